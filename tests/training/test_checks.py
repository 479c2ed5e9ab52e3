from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from keystride.errors import UserError
from keystride.policy.bundle import PolicyError
from keystride.training import TrainingConfig, TrainingStage
from keystride.training.checks import check, process_count
from keystride.training.settings import overridden


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
        ({"robot": "go3"}, "robot: no robot is called 'go3': known are go2"),
        ({"processes": 3}, "8 robots cannot be divided evenly among 3 processes"),
        ({"processes": -1}, "processes must be at least 0, not -1"),
        ({"device": "tpu"}, "device: 'tpu' is not supported"),
        ({"name": "a/b"}, "name: 'a/b' is not a valid folder name"),
    ],
)
def test_mistakes_are_named(tiny: TrainingConfig, values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        check(overridden(tiny, values))
    assert complaint in str(caught.value)


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
