from dataclasses import replace
from pathlib import Path

import pytest

from keystride.errors import UserError
from keystride.training.config import PRESETS, TrainingConfig, differences, overridden, plain_config, read_settings_file

CPU = PRESETS["cpu"]


def test_plain_and_back_is_the_same() -> None:
    config = replace(CPU, library=(Path("a"), Path("b")), start_from=Path("go2-pose"))
    assert overridden(TrainingConfig(), plain_config(config)) == config


def test_overrides_keep_everything_else() -> None:
    config = overridden(CPU, {"learner": {"ppo": {"entropy": "2e-2"}}, "task": {"goals": "any"}})
    assert config.learner.ppo == replace(CPU.learner.ppo, entropy=0.02)
    assert config.task == replace(CPU.task, goals="any")
    assert config.learner.network is CPU.learner.network


def test_groups_are_overridden_by_name_or_replaced_as_a_list() -> None:
    weighted = overridden(CPU, {"learner": {"ppo": {"groups": {"goal": {"advantage_weight": 2}}}}}).learner.ppo.groups
    goal, *others = CPU.learner.ppo.groups
    assert weighted == (replace(goal, advantage_weight=2.0), *others)
    entry = {"name": "all", "advantage_weight": 1, "rewards": [["goal", 25], ["style", 0.5]]}
    (only,) = overridden(CPU, {"learner": {"ppo": {"groups": [entry]}}}).learner.ppo.groups
    assert only.rewards == (("goal", 25.0), ("style", 0.5))


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"learner": {"ppo": {"epoch": 3}}}, "learner.ppo.epoch: unknown setting; did you mean epochs?"),
        ({"learner": {"ppo": {"epochs": "many"}}}, "learner.ppo.epochs: input should be a valid integer"),
        ({"learner": {"ppo": {"epochs": 2.5}}}, "learner.ppo.epochs: input should be a valid integer"),
        ({"learner": 3}, "learner: expected settings such as `name: value`, found 3"),
        ({"task": {"goals": "posture"}}, "task.goals: input should be 'position', 'pose' or 'any'; found 'posture'"),
        ({"task": {"ranges": {"radius": [1, "far"]}}}, "task.ranges.radius.1: input should be a valid number"),
        ({"learner": {"ppo": {"groups": {"gaol": {}}}}}, "learner.ppo.groups.gaol: unknown name; did you mean goal?"),
        ({"learner": {"ppo": {"groups": [{"name": "a"}]}}}, "learner.ppo.groups.0.advantage_weight: missing"),
        ({"stages": [{"name": "a", "utnil": 3}]}, "stages.0.utnil: unknown setting; did you mean until?"),
        ({"stages": 3}, "stages: expected a list, found 3"),
    ],
)
def test_errors_name_the_path(values: dict, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        overridden(CPU, values)
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize(("text", "complaint"), [("a: [", "not valid YAML"), ("- a", "found list")])
def test_files_that_hold_no_settings(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError, match=complaint):
        read_settings_file(tmp_path / "a.yaml")


def test_differences_name_what_changed() -> None:
    other = overridden(CPU, {"authored": False, "learner": {"ppo": {"entropy": 0.5}}})
    assert differences(plain_config(CPU), plain_config(other)) == {
        "authored": (True, False),
        "learner.ppo.entropy": (CPU.learner.ppo.entropy, 0.5),
    }
    assert differences(plain_config(CPU), plain_config(CPU)) == {}
