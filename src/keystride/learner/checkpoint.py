"""Checkpoints: tensors in safetensors, the rest in JSON, written whole or not at all."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

Tree = dict[str, Any]


def save_tree(tree: Tree, stem: Path) -> None:
    """A nested dict of arrays, tensors and plain values, as STEM.safetensors and STEM.json."""
    arrays: dict[str, np.ndarray] = {}
    plain = _split(tree, "", arrays)
    save_file(arrays, stem.with_suffix(".safetensors"))
    stem.with_suffix(".json").write_text(json.dumps(plain))


def load_tree(stem: Path) -> Tree:
    arrays = load_file(stem.with_suffix(".safetensors"))
    return _join(json.loads(stem.with_suffix(".json").read_text()), "", arrays)


def _split(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        return {str(key): _split(part, f"{path}/{key}", arrays) for key, part in value.items()}
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        arrays[path] = np.ascontiguousarray(value)
        return {"__array__": path}
    return value


def _join(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if "__array__" in value:
        return arrays[value["__array__"]]
    return {key: _join(part, f"{path}/{key}", arrays) for key, part in value.items()}


def load_module(module: torch.nn.Module, saved: Tree) -> None:
    module.load_state_dict({name: torch.as_tensor(values) for name, values in saved.items()})


def optimizer_tree(optimizer: torch.optim.Optimizer) -> Tree:
    """Adam's moments by parameter number."""
    return {str(i): dict(state) for i, state in optimizer.state_dict()["state"].items()}


def load_optimizer(optimizer: torch.optim.Optimizer, saved: Tree) -> None:
    state = {int(i): {name: torch.as_tensor(v) for name, v in moments.items()} for i, moments in saved.items()}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def publish(part: Path, place: Path) -> None:
    """Move a finished folder to its place in one step, after its content has reached the disk."""
    for file in part.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    if place.exists():
        old = place.with_name(place.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        place.rename(old)
        part.rename(place)
        shutil.rmtree(old)
    else:
        part.rename(place)


def checkpoints(folder: Path) -> list[Path]:
    """Complete ones, oldest first."""
    return sorted(path for path in folder.glob("[0-9]*") if path.is_dir() and path.name.isdigit())


def prune(folder: Path, keep: int) -> None:
    for path in checkpoints(folder)[:-keep]:
        shutil.rmtree(path)
