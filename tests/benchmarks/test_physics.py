from keystride.benchmarks.physics import physics_figures
from keystride.robot.go2 import GO2


def test_figures_of_one_round() -> None:
    """With one round the medians are the measurements themselves."""
    figures = physics_figures(GO2, envs=4, threads=1, rounds=1)
    assert figures.ratio == figures.steps_per_second / figures.raw_steps_per_second > 0
    assert (figures.envs, figures.threads) == (4, 1)
