from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from keystride.errors import UserError
from keystride.policy.bundle import PolicyError
from keystride.training import PRESETS, TrainingConfig, TrainingStage
from keystride.training.checks import (
    ABOVE_ZERO,
    AT_LEAST,
    BETWEEN_0_AND_1,
    RANGE_SETTINGS,
    check,
    check_settings,
    process_count,
    value_at,
)
from keystride.training.config import overridden


def test_the_presets_pass(tiny: TrainingConfig) -> None:
    check(TrainingConfig(processes=1))
    check(tiny)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"learner": {"ppo": {"minibatches": 0}}}, "learner.ppo.minibatches must be at least 1, not 0"),
        ({"learner": {"horizon": -1}}, "learner.horizon must be at least 1, not -1"),
        ({"learner": {"average": 1.5}}, "learner.average must lie between 0 and 1, not 1.5"),
        (
            {"learner": {"ppo": {"minibatches": 33}}},
            "learner.ppo.minibatches: cannot split 32 samples into 33 minibatches",
        ),
        ({"learner": {"ppo": {"groups": []}}}, "learner.ppo.groups must contain at least one group"),
        (
            {"learner": {"ppo": {"groups": {"goal": {"rewards": [["gaol", 1.0]]}}}}},
            "learner.ppo.groups.goal: unknown reward 'gaol'; did you mean goal?",
        ),
        ({"robot": "go3"}, "robot: unknown robot 'go3'; choose from go2"),
        ({"processes": 3}, "8 robots cannot be divided evenly among 3 processes"),
        ({"processes": -1}, "processes must be at least 0, not -1"),
        ({"learner": {"ppo": {"clone_steps": 0}}}, "learner.ppo.clone_steps must be at least 1, not 0"),
        ({"learner": {"ppo": {"clip": 0.0}}}, "learner.ppo.clip must be above 0, not 0.0"),
        ({"learner": {"ppo": {"target_kl": -1.0}}}, "learner.ppo.target_kl must be above 0, not -1.0"),
        ({"learner": {"ppo": {"target_kl": float("nan")}}}, "learner.ppo.target_kl must be above 0, not nan"),
        (
            {"learner": {"ppo": {"learning_rate_range": [1e-2, 1e-3]}}},
            "learner.ppo.learning_rate_range: the least value comes first, not 0.01, 0.001",
        ),
        ({"learner": {"ppo": {"exploration": {"std_range": [0.5, 0.1]}}}}, "std_range: the least value comes first"),
        ({"learner": {"ppo": {"exploration": {"std_range": [0.0, 0.1]}}}}, "std_range must be above 0, not 0.0, 0.1"),
        ({"learner": {"ppo": {"groups": {"goal": {"lam": 1.1}}}}}, "groups.goal.lam must lie between 0 and 1, not 1.1"),
        (
            {"learner": {"ppo": {"groups": {"goal": {"rewards": []}}}}},
            "groups.goal.rewards must name at least one reward",
        ),
        ({"learner": {"network": {"mlp": [16, 0]}}}, "learner.network.mlp must be at least 1, not 16, 0"),
        ({"learner": {"network": {"heads": 3}}}, "learner.network.heads must divide the width of a token, which is 16"),
        ({"learner": {"network": {"width": 0, "heads": 4}}}, "divide the width of a token, which is 70; 4 does not"),
        ({"learner": {"network": {"servo_column": 13}}}, "servo_column must lie between 0 and 12, not 13"),
        ({"learner": {"network": {"servo_column": -1}}}, "servo_column must lie between 0 and 12, not -1"),
        ({"learner": {"network": {"next_goal_time_column": 24}}}, "column must lie between 0 and 23, not 24"),
        ({"learner": {"network": {"time_scales": [0.1, 0.0]}}}, "time_scales must be above 0, not 0.1, 0.0"),
        ({"learner": {"discriminator": {"hidden": [0]}}}, "learner.discriminator.hidden must be at least 1, not 0"),
        ({"task": {"randomized_share": 1.5}}, "task.randomized_share must lie between 0 and 1, not 1.5"),
        ({"task": {"tail_steps": [150, 5]}}, "task.tail_steps: the least value comes first, not 150, 5"),
        ({"task": {"tail_steps": [0, 5]}}, "task.tail_steps must be at least 1, not 0, 5"),
        ({"task": {"ranges": {"count": [5, 1]}}}, "task.ranges.count: the least value comes first, not 5, 1"),
        ({"task": {"ranges": {"interval_steps": [50, 25]}}}, "interval_steps: the least value comes first, not 50, 25"),
        ({"task": {"ranges": {"random_share": [0.0, 2.0]}}}, "random_share must lie between 0 and 1, not 0.0, 2.0"),
        ({"task": {"ranges": {"leap_share": -0.1}}}, "task.ranges.leap_share must lie between 0 and 1, not -0.1"),
        (
            {"task": {"ranges": {"leap_share": 0.5, "posture_share": 0.4, "everyday_share": 0.2}}},
            "task.ranges: the sum of leap_share, posture_share, backward_share, everyday_share must be at most 1, not 1.1",
        ),
        ({"task": {"ranges": {"everyday": {"shares": [0.5, 0.2, 0.2]}}}}, "everyday.shares must add up to 1, not 0.9"),
        ({"task": {"goal_widths": {"position": 0.0}}}, "task.goal_widths.position must be above 0, not 0.0"),
        ({"device": "tpu"}, "device: 'tpu' is not supported"),
        ({"device": "t" * 1000}, f"device: '{'t' * 56}... is not supported"),
        ({"name": "a/b"}, "name: 'a/b' is not a valid folder name"),
    ],
)
def test_mistakes_are_named(tiny: TrainingConfig, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        check(overridden(tiny, values))
    assert complaint in str(caught.value)


def test_every_setting_in_the_tables_exists() -> None:
    for path in (*AT_LEAST, *ABOVE_ZERO, *BETWEEN_0_AND_1, *RANGE_SETTINGS):
        value_at(TrainingConfig(), path)
    assert all(len(value_at(TrainingConfig(), path) or (0, 0)) == 2 for path in RANGE_SETTINGS)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_sound(preset: str) -> None:
    check_settings(PRESETS[preset])


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed")
def test_wandb_has_to_be_installed(tiny: TrainingConfig) -> None:
    with pytest.raises(UserError, match=r"wandb is not installed; run `pip install wandb`"):
        check(replace(tiny, wandb="project"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_cuda(tiny: TrainingConfig) -> None:
    with pytest.raises(UserError, match="finds no CUDA device"):
        check(replace(tiny, device="cuda"))


def test_files_must_exist(tiny: TrainingConfig, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        check(replace(tiny, library=(tmp_path / "nowhere",)))
    with pytest.raises(PolicyError, match="nowhere"):
        check(replace(tiny, start_from=tmp_path / "nowhere"))


def test_every_stage_is_checked(tiny: TrainingConfig) -> None:
    later = TrainingStage("later", overrides={"learner": {"horizon": 0}})
    with pytest.raises(UserError, match=r"stages\.later: learner\.horizon must be at least 1"):
        check(replace(tiny, stages=(TrainingStage("first", 32), later)))


def test_stages_can_not_change_the_sizes_of_networks(tiny: TrainingConfig) -> None:
    noise = TrainingStage("later", overrides={"learner": {"network": {"initial_std": 0.1}}})
    check(replace(tiny, stages=(TrainingStage("first", 32), noise)))
    wider = TrainingStage("later", overrides={"learner": {"network": {"width": 32}}})
    with pytest.raises(UserError, match=r"stages\.later: changes the network sizes"):
        check(replace(tiny, stages=(TrainingStage("first", 32), wider)))


def test_as_many_processes_as_divide_the_robots(tiny: TrainingConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert process_count(replace(tiny, processes=0), cores=7) == 4
    larger = TrainingStage("later", overrides={"learner": {"environments": 18}})
    assert process_count(replace(tiny, processes=0, stages=(TrainingStage("first", 32), larger)), cores=7) == 2
