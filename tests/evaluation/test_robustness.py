import numpy as np

from keystride.evaluation.episodes import World
from keystride.evaluation.libraries import Libraries
from keystride.evaluation.robustness import FACTORS, robustness
from keystride.evaluation.suites import Contender, Setting, draw
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


def test_varying_nothing_is_the_plain_simulation_bit_for_bit(standing: Policy, libraries: Libraries) -> None:
    setting = Setting(GO2, Contender("standing", standing), libraries, episodes=4)
    drawn = draw(setting, "robustness", libraries.dataset, random_share=0.5)
    plain = setting.run("plain", setting.contender, drawn.start, drawn.goals)
    nothing = setting.run("n", setting.contender, drawn.start, drawn.goals, World(randomization=FACTORS["nothing"]))
    assert np.array_equal(plain.trace.position, nothing.trace.position)


def test_every_factor_changes_the_same_episodes(standing: Policy, libraries: Libraries) -> None:
    outcome = robustness(Setting(GO2, Contender("standing", standing), libraries, episodes=4))
    assert list(outcome.rollouts) == ["nothing", "friction", "gains", "lag", "pushes", "everything"]
    base = outcome.rollouts["nothing"]
    for name, rollout in outcome.rollouts.items():
        assert np.array_equal(rollout.goals.position, base.goals.position)
        assert np.array_equal(rollout.trace.position[0], base.trace.position[0])
        assert (name == "nothing") == np.array_equal(rollout.trace.position, base.trace.position)
