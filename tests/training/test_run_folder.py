"""What a run's folder decides: which policy is best, and whether episodes continue."""

import json
import math

import pytest

from keystride.errors import UserError
from keystride.learner.checkpoint import checkpoints, load_tree
from keystride.task.config import TaskConfig
from keystride.training import TrainingConfig
from keystride.training.build import load_library, make_trainer
from keystride.training.config import overridden, resolved_stages
from keystride.training.run_folder import CHECKPOINTS, RunFolder, _same_episodes, score


def test_the_score_adds_errors_in_units_of_the_papers_widths() -> None:
    """0.4 m are two widths, 0.3 rad of yaw one, and the norm of 0.2 rad at twelve joints one. Other figures do not count."""
    results = {"dataset/position": 0.4, "random/yaw": 0.3, "leap/posture": 0.2 * math.sqrt(12), "dataset/met": 1.0}
    assert score(TaskConfig(), results) == pytest.approx(4.0)
    assert score(TaskConfig(), {}) == 0.0


def test_a_checkpoint_without_newer_settings_continues_its_episodes(finished: TrainingConfig) -> None:
    """Settings that were added since a checkpoint was written have their defaults in it."""
    (stage,) = resolved_stages(finished)
    saved = json.loads((checkpoints(finished.folder / "checkpoints")[-1] / "learner.json").read_text())["settings"]
    assert _same_episodes(saved, stage)
    older = {name: value for name, value in saved.items() if name != "robot"}
    older["learner"]["ppo"].pop("critic_warmup_steps")
    assert _same_episodes(older, stage)
    older["task"]["goals"] = "any"
    assert not _same_episodes(older, stage)


def test_what_the_run_did_not_write_is_not_replaced(tmp_path) -> None:
    config = TrainingConfig(name="run", runs=tmp_path / "runs")
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "thesis.txt").write_text("ten years")
    config.folder.mkdir(parents=True)
    folder = RunFolder(config)
    best = config.folder / "best"
    folder._check_replaceable(best)
    best.symlink_to(documents)
    with pytest.raises(FileExistsError, match=r"a link to .*documents"):
        folder._check_replaceable(best)
    best.unlink()
    documents.rename(best)
    with pytest.raises(UserError, match="not a checkpoint"):
        folder._check_replaceable(best)
    assert (best / "thesis.txt").exists()
    folder.close()


def test_a_stage_that_names_a_learning_rate_begins_with_it(finished: TrainingConfig) -> None:
    def rate_with(**ppo: float) -> float:
        (stage,) = resolved_stages(overridden(finished, {"learner": {"ppo": ppo}}))
        library = load_library(stage.config)
        trainer = make_trainer(stage.config, library)
        run = RunFolder(finished)
        run.begin(trainer, stage, library)
        run.close()
        return trainer.ppo.learning_rate

    newest = checkpoints(finished.folder / CHECKPOINTS)[-1]
    saved = load_tree(newest / "learner")["learning_rate"]
    assert rate_with() == saved != 0.0042
    assert rate_with(learning_rate=0.0042) == 0.0042
