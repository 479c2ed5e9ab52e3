"""Checkpoints: tensors in safetensors, the rest in JSON, written completely or not at all."""

import json
import shutil
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
from safetensors.numpy import save_file

from keystride.errors import FileError
from keystride.reading import one_line, read_json, read_tensors

Tree = dict[str, Any]


def save_tree(tree: Tree, stem: Path) -> None:
    """Write a nested dict of arrays, tensors and plain values as STEM.safetensors and STEM.json."""
    arrays: dict[str, np.ndarray] = {}
    plain = _split(tree, "", arrays)
    save_file(arrays, stem.with_suffix(".safetensors"))
    stem.with_suffix(".json").write_text(json.dumps(plain))


class SavedTree(dict[str, Any]):
    """A tree that was read from a file: a missing entry is an error of the file."""

    def __init__(self, source: Path, content: Tree) -> None:
        super().__init__(content)
        self.source = source

    def __missing__(self, name: str) -> Any:
        raise FileError(f"{self.source}: no entry {name!r}: damaged, or of another version")


Load = TypeVar("Load", bound=Callable[..., None])


def checkpoint_errors(load: Load) -> Load:
    """Decorate a method that loads a checkpoint: every error becomes a FileError that names the checkpoint."""

    @wraps(load)
    def checked(self: Any, place: Path, *args: Any, **options: Any) -> None:
        try:
            load(self, place, *args, **options)
        except FileError as error:
            message = str(error)
            raise FileError(message if str(place) in message else f"{place}: {message}") from error
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise FileError(f"{place}: damaged, or a checkpoint of another run") from error

    return cast(Load, checked)


def load_tree(stem: Path) -> Tree:
    """Return a tree that `save_tree` wrote; FileError names the file and what is wrong with it."""
    source = stem.with_suffix(".safetensors")
    try:
        arrays = read_tensors(source)
    except FileError as error:
        raise FileError(f"{source}: {error}") from error
    plain = stem.with_suffix(".json")
    content = read_json(plain)
    if not isinstance(content, dict):
        raise FileError(f"{plain}: not a mapping")
    return _join(content, plain, arrays)


def _split(value: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        return {str(key): _split(part, f"{path}/{key}", arrays) for key, part in value.items()}
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        arrays[path] = np.ascontiguousarray(value)
        return {"__array__": path}
    return value


def _join(value: Any, source: Path, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if "__array__" in value:
        name = value["__array__"]
        if not isinstance(name, str) or name not in arrays:
            raise FileError(f"{source}: no tensor {one_line(repr(name), 60)} in the safetensors file beside it")
        return arrays[name]
    return SavedTree(source, {key: _join(part, source, arrays) for key, part in value.items()})


def load_module(module: torch.nn.Module, saved: Tree) -> None:
    """Load saved tensors into a module; FileError names the first that is missing, unknown or of another shape."""
    tensors = _tensors(saved, "the weights")
    expected = module.state_dict()
    for name in [*expected, *tensors]:
        found, wanted = tensors.get(name), expected.get(name)
        if found is None or wanted is None:
            raise FileError(f"{'unknown' if wanted is None else 'no'} tensor {one_line(repr(name), 60)} in the weights")
        if found.shape != wanted.shape and not (found.shape == (1,) and wanted.shape == ()):  # files have no scalars
            raise FileError(f"tensor {name!r} is {tuple(found.shape)}, {tuple(wanted.shape)} expected")
    module.load_state_dict(tensors)


def _tensors(saved: Any, what: str) -> dict[str, torch.Tensor]:
    if not isinstance(saved, dict) or not all(
        isinstance(values, np.ndarray | torch.Tensor) for values in saved.values()
    ):
        raise FileError(f"{what} are not tensors by name")
    return {name: torch.as_tensor(values) for name, values in saved.items()}


def widen(saved: Tree, own: dict[str, torch.Tensor]) -> Tree:
    """Return the saved weights, grown to the shapes of a network `own` that is wider or has more outputs.

    New units keep the weights of `own` for their inputs, and saved units get zero weights from new ones: the grown network computes
    what the saved one did.
    """

    def fill(name: str, new: torch.Tensor) -> torch.Tensor:
        old = torch.as_tensor(saved[name])
        if old.ndim != new.ndim or any(a > b for a, b in zip(old.shape, new.shape, strict=True)):
            return old
        grown = new.clone()
        grown[: len(old)] = 0.0
        grown[tuple(slice(size) for size in old.shape)] = old
        return grown

    return {name: fill(name, new) if new.ndim else saved[name] for name, new in own.items() if name in saved}


def optimizer_tree(optimizer: torch.optim.Optimizer) -> Tree:
    """Return Adam's moments by parameter number."""
    return {str(i): dict(state) for i, state in optimizer.state_dict()["state"].items()}


def load_optimizer(optimizer: torch.optim.Optimizer, saved: Tree) -> None:
    """Load saved moments into an optimizer; FileError if they do not belong to its parameters."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    state = {i: _tensors(saved[i], f"the moments of parameter {i}") for i in saved}
    for i, moments in state.items():
        shapes = {tuple(values.shape) for values in moments.values() if values.numel() != 1}
        if not i.isdecimal() or int(i) >= len(parameters) or shapes - {tuple(parameters[int(i)].shape)}:
            raise FileError(f"the optimizer's entry {one_line(i, 40)!r} belongs to another network")
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": {int(i): moments for i, moments in state.items()}, "param_groups": groups})


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints in a folder, oldest first."""
    return sorted(path for path in folder.glob("[0-9]*") if path.is_dir() and path.name.isdigit())


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest checkpoints, and what killed processes left unfinished.

    They are renamed first: a kill halfway leaves no incomplete checkpoint behind.
    """
    for path in checkpoints(folder)[:-keep]:
        path.rename(path.with_name(f"{path.name}.old"))
    for path in (*folder.glob("[0-9]*.old"), *folder.glob("[0-9]*.part")):
        shutil.rmtree(path)
