"""Files of a checkpoint, and what is refused when they do not fit."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from keystride.errors import FileError
from keystride.learner.checkpoint import load_module, load_optimizer, load_tree, optimizer_tree, save_tree, widen
from keystride.learner.config import NetworkConfig
from keystride.learner.networks import SequenceNetwork


def test_trees_come_back_as_they_went(tmp_path: Path) -> None:
    tree = {"a": torch.arange(3), "b": {"c": 1.5, "d": [1, 2], "big": 2**100}, "e": None}
    save_tree(tree, tmp_path / "tree")
    back = load_tree(tmp_path / "tree")
    assert back["a"].tolist() == [0, 1, 2]
    assert back["b"] == tree["b"]
    assert back["e"] is None


def test_a_missing_entry_names_the_file(tmp_path: Path) -> None:
    save_tree({"a": {"b": 1}}, tmp_path / "tree")
    with pytest.raises(FileError, match=r"tree\.json: no entry 'c'"):
        load_tree(tmp_path / "tree")["a"]["c"]


def test_a_tensor_that_is_not_in_the_other_file_is_named(tmp_path: Path) -> None:
    save_tree({"a": torch.zeros(2)}, tmp_path / "tree")
    (tmp_path / "tree.json").write_text(json.dumps({"a": {"__array__": "/b"}}))
    with pytest.raises(FileError, match="no tensor '/b'"):
        load_tree(tmp_path / "tree")


@pytest.mark.parametrize(
    ("saved", "complaint"),
    [
        ({"weight": torch.zeros(2, 3)}, "no tensor 'bias'"),
        ({"weight": torch.zeros(2, 3), "bias": torch.zeros(2), "scale": torch.zeros(1)}, "unknown tensor 'scale'"),
        ({"weight": torch.zeros(2, 4), "bias": torch.zeros(2)}, r"tensor 'weight' is \(2, 4\), \(2, 3\) expected"),
    ],
)
def test_weights_of_another_network_are_refused(saved: dict[str, torch.Tensor], complaint: str) -> None:
    with pytest.raises(FileError, match=complaint):
        load_module(nn.Linear(3, 2), saved)


def adam(module: nn.Module) -> torch.optim.Adam:
    made = torch.optim.Adam(module.parameters())
    sum(parameter.sum() for parameter in module.parameters()).backward()  # type: ignore[union-attr]
    made.step()
    return made


def test_the_moments_of_an_optimizer_come_back(tmp_path: Path) -> None:
    one, other = adam(nn.Linear(3, 2)), torch.optim.Adam(nn.Linear(3, 2).parameters())
    save_tree(optimizer_tree(one), tmp_path / "moments")
    load_optimizer(other, load_tree(tmp_path / "moments"))
    for i, moments in one.state_dict()["state"].items():
        for name, values in moments.items():
            assert torch.allclose(torch.as_tensor(other.state_dict()["state"][i][name]).squeeze(), values.squeeze())


def test_the_moments_of_another_network_are_refused() -> None:
    with pytest.raises(FileError, match="belongs to another network"):
        load_optimizer(torch.optim.Adam(nn.Linear(4, 2).parameters()), optimizer_tree(adam(nn.Linear(3, 2))))


def test_new_reward_groups_get_new_outputs_behind_the_saved_ones() -> None:
    saved, own = {"head": torch.ones(2, 3)}, {"head": torch.zeros(4, 3), "new": torch.zeros(1)}
    extended = widen(saved, own)
    assert extended["head"].tolist() == [[1.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3]
    assert "new" not in extended


def test_a_widened_network_computes_what_the_narrow_one_did() -> None:
    narrow, wide = (
        SequenceNetwork(NetworkConfig(width=8, feedforward=16, mlp=mlp, state_to_mlp=True), 5, 4, 3)
        for mlp in ((16, 8), (24, 12))
    )
    load_module(wide, widen(narrow.state_dict(), wide.state_dict()))
    state, goals = torch.randn(6, 5), torch.randn(6, 2, 4)
    assert torch.allclose(narrow(state, goals), wide(state, goals), atol=1e-6)
    assert wide.mlp[0].get_parameter("weight")[16:].abs().max() > 0.0  # the new units can learn


def test_a_network_is_never_narrowed() -> None:
    assert widen({"layer": torch.ones(4, 3)}, {"layer": torch.zeros(2, 3)})["layer"].shape == (4, 3)
