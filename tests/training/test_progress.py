"""What a run shows of itself, and where metrics go."""

from dataclasses import replace
from importlib.util import find_spec

import pytest

from keystride.errors import UserError
from keystride.training import TrainingConfig
from keystride.training.progress import ProgressDisplay, WeightsAndBiases, iteration_summary, loggers, where_time_goes


def test_errors_are_shown_in_units_people_use() -> None:
    """Yaw in degrees, posture as the root mean square over twelve joints, in degrees."""
    row = {"kernel_error/position": 0.1234, "kernel_error/yaw": 0.5, "kernel_error/posture": 12**0.5, "met": 0.25}
    assert iteration_summary(row) == [
        ("error: distance", "0.123 m"),
        ("error: yaw", "28.6 deg"),
        ("error: posture", "57.3 deg RMSE"),
        ("keyframes within 0.2 m", "25%"),
    ]


def test_shares_of_the_time() -> None:
    assert where_time_goes({"rollout": 3.0, "ppo": 1.0}) == "rollout 75%, ppo 25%"
    assert where_time_goes({}) == ""


def test_off_a_terminal_stages_and_evaluations_are_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay("mine", 1000)
    display.start("walk")
    display.show_evaluation({"dataset/position": 0.25}, 500)
    display.show({"steps": 600}, {"ppo": 1.0})  # within seconds of the last line: nothing
    display.stop()
    assert capsys.readouterr().out == "stage walk\nevaluation at 500 steps: dataset/position 0.25\n"


def test_nothing_is_sent_unless_asked_for(tiny: TrainingConfig) -> None:
    tiny.folder.mkdir()
    found = loggers(tiny)
    for logger in found:
        logger.close()
    assert not any(isinstance(logger, WeightsAndBiases) for logger in found)


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed")
def test_wandb_that_is_not_installed_is_named(tiny: TrainingConfig) -> None:
    tiny.folder.mkdir()
    with pytest.raises(UserError, match="pip install wandb"):
        loggers(replace(tiny, wandb="project"))
