"""Find policies: bundles that ship, by name; bundle folders; ONNX files; training runs and checkpoints."""

from pathlib import Path

from keystride.files import recover
from keystride.policy.metadata import PolicyError

SHIPPED = Path(__file__).with_name("shipped")
POLICY_FILE = "policy.onnx"  # actor, with everything around it
CRITIC = "critic.onnx"  # critics, likewise
WEIGHTS = "weights.safetensors"  # of all networks, to go on training
CONFIG = "config.yaml"  # all settings of the run
CURVE = "curve.json"  # its learning curve, see policy.curve
FIGURES = "figures.json"  # rows of `keystride evaluate`, when there are any
NOTES_FILE = "notes.md"  # further known limits, when there are any
CARD = "card.md"  # the model card
METRICS_FILE = "metrics.jsonl"  # in runs only


def known() -> tuple[str, ...]:
    """Return the names of the policies that ship."""
    return tuple(sorted(path.name for path in SHIPPED.glob("*") if is_bundle(path)))


def find(name_or_path: str | Path) -> Path:
    """Return the bundle folder, ONNX file, run or checkpoint folder of a policy. Shipped names take precedence over paths."""
    if str(name_or_path) in known():
        return SHIPPED / str(name_or_path)
    path = Path(name_or_path)
    if not path.exists():
        recover(path)
    if not path.exists():
        raise PolicyError(f"no policy {str(name_or_path)!r}: {_choices()}")
    if path.is_file() or is_bundle(path) or is_trained_run(path) or is_checkpoint(path):
        return path
    raise PolicyError(f"{path} is neither a bundle nor a run with a checkpoint: {_choices()}")


def onnx_file(name_or_path: str | Path, name: str = POLICY_FILE) -> Path:
    """Return the ONNX file of a policy, or of its critics with the name CRITIC.

    Runs have one too, written whenever their best checkpoint changes.
    """
    path = find(name_or_path)
    if path.is_file():
        return path
    if (path / name).is_file():
        return path / name
    if is_bundle(path):
        raise PolicyError(f"{path} has no {name}")
    raise PolicyError(f"{path} has no {name} yet: `keystride export {path} --out FILE.onnx` makes one")


def is_bundle(path: Path) -> bool:
    return (path / POLICY_FILE).is_file() and (path / WEIGHTS).is_file()


def is_trained_run(path: Path) -> bool:
    return (path / CONFIG).is_file() and run_checkpoint(path) is not None


def is_checkpoint(path: Path) -> bool:
    return (path / "learner.safetensors").is_file()


def run_checkpoint(run: Path, *, newest: bool = False) -> Path | None:
    """Return the best checkpoint of a run, or its newest."""
    if is_checkpoint(run / "best") and not newest:
        return run / "best"
    numbered = sorted(path for path in (run / "checkpoints").glob("[0-9]*") if path.name.isdigit())
    return numbered[-1] if numbered else None


def home(place: Path) -> Path:
    """Return the folder with a policy's configuration: the bundle, the run, or the run of a checkpoint."""
    for folder in (place, place.parent, place.parent.parent):
        if (folder / CONFIG).is_file():
            return folder
    raise PolicyError(f"{place}: it has no {CONFIG}")


def _choices() -> str:
    names = known()
    shipped = f"known names are {', '.join(names)}; " if names else ""
    return f"{shipped}or give a bundle folder, an .onnx file or a run folder"
