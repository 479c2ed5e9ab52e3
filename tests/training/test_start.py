"""Runs of six iterations: folders, resuming, stages, what is refused."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from keystride.errors import UserError
from keystride.geometry import projected_gravity
from keystride.learner.checkpoint import checkpoints, load_tree
from keystride.learner.config import RewardGroup
from keystride.task.rewards import ControlStep, kernel
from keystride.training import TrainingConfig, TrainingStage, train
from keystride.training.config import CONFIG, read_config
from keystride.training.start import _locked

ITERATION = 32  # control steps of an iteration of the tiny run


def metrics(config: TrainingConfig) -> list[dict[str, float]]:
    return [json.loads(line) for line in (config.folder / "metrics.jsonl").read_text().splitlines()]


def final(config: TrainingConfig) -> dict:
    return load_tree(checkpoints(config.folder / "checkpoints")[-1] / "learner")


def assert_same_weights(one: dict, other: dict) -> None:
    assert one["iteration"] == other["iteration"]
    for part in ("actor", "averaged", "critics", "discriminator"):
        assert all((one[part][name] == other[part][name]).all() for name in one[part]), part


def test_a_run_and_its_folder(trained: TrainingConfig) -> None:
    rows = metrics(trained)
    assert [row["steps"] for row in rows] == [ITERATION * i for i in range(7)]
    evaluated = [row["steps"] for row in rows if any(name.startswith("evaluation/") for name in row)]
    assert evaluated == [0, 3 * ITERATION, 6 * ITERATION]
    assert read_config(trained.folder / CONFIG) == trained
    assert json.loads((trained.folder / "best" / "figures.json").read_text())["steps"] in evaluated[1:]
    with pytest.raises(UserError, match="already contains a run: continue it with --resume"):
        train(trained)


def test_what_differs_on_resuming_is_refused_or_recorded(tiny: TrainingConfig) -> None:
    tiny = replace(tiny, evaluation=replace(tiny.evaluation, control_steps=60))
    short = replace(tiny, learner=replace(tiny.learner, steps=2 * ITERATION))
    train(short)
    with pytest.raises(UserError, match=r"learner\.steps is 64, not 192.*--change learner\.steps"):
        train(tiny, resume=True)
    assert read_config(tiny.folder / CONFIG) == short
    changed = replace(tiny, task=replace(tiny.task, goals="any"))
    with pytest.raises(
        UserError, match=r"task\.goals is \"position\", not \"any\"\. To continue .* --change task\.goals$"
    ):
        train(changed, resume=True, change=("learner.steps",))
    assert train(changed, resume=True, change=("learner.steps", "task")).steps == 6 * ITERATION
    (entry,) = map(json.loads, (tiny.folder / "changes.jsonl").read_text().splitlines())
    assert entry["steps"] == 2 * ITERATION
    assert entry["changes"] == {
        "learner.steps": {"from": 64, "to": 192},
        "task.goals": {"from": "position", "to": "any"},
    }
    assert read_config(tiny.folder / CONFIG) == changed
    assert "evaluation/dataset/posture" in metrics(tiny)[-1]


def test_there_must_be_a_run_to_resume(tiny: TrainingConfig) -> None:
    with pytest.raises(UserError, match="contains no run to resume"):
        train(tiny, resume=True)
    assert not tiny.folder.exists()


def test_a_run_killed_before_its_first_checkpoint_starts_over(finished: TrainingConfig) -> None:
    whole = final(finished)
    shutil.rmtree(finished.folder / "checkpoints")
    outcome = train(finished, resume=True)
    assert (outcome.steps, outcome.stopped_by) == (6 * ITERATION, None)
    assert_same_weights(final(finished), whole)


def test_no_two_processes_train_the_same_run(tiny: TrainingConfig) -> None:
    import fcntl

    tiny.folder.mkdir()
    with (tiny.folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another process is training"):
            train(tiny)


@pytest.mark.parametrize("name", [".lock", "best", "policy.onnx", "checkpoints/000000000100"])
def test_a_run_with_a_link_in_it_is_refused(tiny: TrainingConfig, tmp_path, name) -> None:
    important = tmp_path / "important"
    important.write_text("ten years")
    link = tiny.folder / name
    link.parent.mkdir(parents=True)
    link.symlink_to(important)
    with pytest.raises(FileExistsError, match=r"a link to .*important"), _locked(tiny.folder):
        pass
    assert important.read_text() == "ten years"


def test_stages_follow_one_another_and_resume_exactly(tiny: TrainingConfig) -> None:
    """Whatever checkpoint a killed run left, it ends with the same weights."""
    any_goals = {
        "task": {"goals": "any", "end_at_joint_limits": True},
        "learner": {"ppo": {"entropy": 0.05, "groups": {"goal": {"advantage_weight": 1.5}}}},
    }
    fewer = {"learner": {"environments": 4, "horizon": 8}, "task": {"max_keyframes": 6}}
    stages = (
        TrainingStage("walk", 2 * ITERATION),
        TrainingStage("pose", 3 * ITERATION + 1, any_goals),  # ends inside an iteration
        TrainingStage("fewer", overrides=fewer),
    )
    config = replace(tiny, stages=stages, learner=replace(tiny.learner, checkpoint_minutes=0.0))
    train(config)
    rows, whole = metrics(config), final(config)
    assert [row["stage"] for row in rows] == [1, 1, 1, 2, 2, 3, 3]
    saved = [load_tree(place / "learner")["settings"] for place in checkpoints(config.folder / "checkpoints")]
    assert [settings["stage"] for settings in saved] == ["walk", "walk", "pose", "pose", "fewer", "fewer"]
    assert (saved[-1]["task"]["goals"], saved[-1]["task"]["max_keyframes"]) == ("any", 6)
    assert saved[-1]["learner"]["ppo"]["groups"][0]["advantage_weight"] == 1.5
    for left in (5, 3, 2):  # inside the last stage, and at both borders
        for place in checkpoints(config.folder / "checkpoints")[left:]:
            shutil.rmtree(place)
        assert train(config, resume=True).steps == 6 * ITERATION
        assert_same_weights(final(config), whole)


def test_a_finished_run_has_nothing_to_resume(finished: TrainingConfig) -> None:
    before = metrics(finished)
    assert train(finished, resume=True).message.startswith("finished at 192 control steps")
    assert metrics(finished) == before


def level(step: ControlStep) -> np.ndarray:
    """1 with the trunk level, falling with its tilt."""
    return kernel(projected_gravity(step.state.orientation)[:, :2], 0.2)


def test_a_reward_of_your_own_is_a_function_and_an_entry_in_the_configuration(tiny: TrainingConfig) -> None:
    group = RewardGroup("level", 0.2, (("level", 1.0),))
    ppo = replace(tiny.learner.ppo, groups=(*tiny.learner.ppo.groups, group))
    config = replace(tiny, learner=replace(tiny.learner, steps=2 * ITERATION, ppo=ppo))
    with pytest.raises(
        UserError, match=r"learner\.ppo\.groups\.level: unknown reward 'level'; choose from style, goal"
    ):
        train(config)
    with pytest.raises(UserError, match=r"custom reward functions need processes=1"):
        train(replace(config, processes=2), rewards={"level": level})
    assert not config.folder.exists()
    train(config, rewards={"level": level})
    row = metrics(config)[-1]
    assert 0.0 < row["reward/level"] <= 1.0
    assert "explained/level" in row
