from dataclasses import replace
from pathlib import Path

import pytest

from keystride.errors import UserError
from keystride.learner.config import PAPER
from keystride.training.config import (
    CONFIG,
    PRESETS,
    TrainingConfig,
    TrainingStage,
    read_config,
    resolved_stages,
    set_by_stages,
    stage_at,
    write_config,
)

RECIPES = Path(__file__).parents[2] / "recipes"
TWO_STAGES = """
learner: {horizon: 12}
stages:
  - name: walk
    until: 1_000
    overrides: {task: {goals: position}, learner: {ppo: {entropy: 0.5}}}
  - name: pose
    until: 3_000
    overrides: {task: {goals: any}}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> TrainingConfig:
    (tmp_path / "recipe.yaml").write_text(TWO_STAGES)
    return read_config(tmp_path / "recipe.yaml")


def test_a_file_is_read_on_top_of_a_preset(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("preset: paper\nlearner: {horizon: 12}\n")
    assert read_config(tmp_path / "a.yaml").learner == replace(PAPER, horizon=12)
    assert read_config(tmp_path / "a.yaml", "cpu").learner == replace(PRESETS["cpu"].learner, horizon=12)


def test_errors_name_file_and_path(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("learner: {horizn: 12}")
    with pytest.raises(UserError, match=r"a\.yaml: learner\.horizn: unknown setting; did you mean horizon\?"):
        read_config(tmp_path / "a.yaml")
    (tmp_path / "a.yaml").write_text("preset: papers")
    with pytest.raises(UserError, match="unknown preset 'papers'; choose from cpu, paper, single-critic"):
        read_config(tmp_path / "a.yaml")


def test_what_is_written_is_read(recipe: TrainingConfig, tmp_path: Path) -> None:
    write_config(recipe, tmp_path)
    assert read_config(tmp_path / CONFIG) == recipe


def test_stages_build_on_one_another_and_end_the_run(recipe: TrainingConfig) -> None:
    assert recipe.learner.steps == 3_000
    walk, pose = resolved_stages(recipe)
    assert (walk.config.task.goals, pose.config.task.goals) == ("position", "any")
    assert walk.config.learner.ppo.entropy == pose.config.learner.ppo.entropy == 0.5
    assert walk.config.learner.steps == walk.until  # the noise is annealed at the end of every stage
    assert pose.config.learner.steps == 3_000
    assert pose.settings["stage"] == "pose"
    assert pose.settings["stages"] == []


@pytest.mark.parametrize(
    ("steps", "name"), [(0, "walk"), (999, "walk"), (1_000, "pose"), (2_999, "pose"), (3_000, None)]
)
def test_the_steps_decide_the_stage(recipe: TrainingConfig, steps: int, name: str | None) -> None:
    stage = stage_at(recipe, steps)
    assert (stage.name if stage else None) == name


def test_a_run_without_stages_has_one() -> None:
    (stage,) = resolved_stages(TrainingConfig())
    assert stage.until == TrainingConfig().learner.steps
    assert stage.config == TrainingConfig()


def test_the_last_stage_may_last_until_the_run_ends(recipe: TrainingConfig) -> None:
    first, last = recipe.stages
    open_ended = replace(recipe, stages=(first, replace(last, until=None)))
    assert resolved_stages(open_ended)[-1].until == 3_000


@pytest.mark.parametrize(
    ("stages", "complaint"),
    [
        ((TrainingStage("a"), TrainingStage("b", 3_000)), "stages.a.until: missing"),
        (
            (TrainingStage("a", 3_000), TrainingStage("b", 3_000)),
            "stages.b.until: the stage ends at 3,000 control steps, but begins at 3,000",
        ),
        (
            (TrainingStage("a", 2_000),),
            "stages.a.until: the last stage ends at 2,000 control steps, but learner.steps is 3,000",
        ),
        ((TrainingStage("a", 1_000), TrainingStage("a", 3_000)), "two stages have the same name"),
        (
            (TrainingStage("a", 3_000, {"learner": {"seed": 3}}),),
            "stages.a.overrides.learner.seed: a stage cannot change this setting",
        ),
        ((TrainingStage("a", 3_000, {"task": {"gaols": "any"}}),), "stages.a.overrides.task.gaols: unknown setting"),
    ],
)
def test_stages_that_make_no_sense(recipe: TrainingConfig, stages: tuple[TrainingStage, ...], complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        resolved_stages(replace(recipe, stages=stages))
    assert complaint in str(caught.value)


def test_settings_that_a_stage_sets_are_known(recipe: TrainingConfig) -> None:
    changed = ("learner.ppo.entropy", "learner.ppo.epochs", "task.goals", "learner.horizon")
    assert set_by_stages(recipe, dict.fromkeys(changed)) == {"learner.ppo.entropy": "walk", "task.goals": "pose"}


def test_the_single_critic_preset_has_one_group() -> None:
    assert [group.name for group in PRESETS["single-critic"].learner.ppo.groups] == ["all"]


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_is_complete(path: Path) -> None:
    stages = resolved_stages(read_config(path))
    assert stages[-1].until == stages[-1].config.learner.steps
