"""Keystride: direct a legged robot with timed keyframes.

    import keystride

    recording = keystride.play("walk", policy="go2-pose")
    print(recording.errors)
    recording.to_html("walk.html")

The names below are imported when they are first used, so that `import keystride` is quick and needs no extras.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keystride.api import evaluate, load_policy, make_env, play
    from keystride.evaluation.recording import Recording
    from keystride.keyframes.files import load_script
    from keystride.keyframes.script import Keyframe, Script
    from keystride.robot.catalogue import load_robot
    from keystride.robot.description import Robot
    from keystride.task.config import TaskConfig
    from keystride.training.config import TrainingConfig
    from keystride.training.start import train

__version__ = "0.1.0"

_HOMES = {
    "Keyframe": "keystride.keyframes.script",
    "Recording": "keystride.evaluation.recording",
    "Robot": "keystride.robot.description",
    "Script": "keystride.keyframes.script",
    "TaskConfig": "keystride.task.config",
    "TrainingConfig": "keystride.training.config",
    "evaluate": "keystride.api",
    "load_policy": "keystride.api",
    "load_robot": "keystride.robot.catalogue",
    "load_script": "keystride.keyframes.files",
    "make_env": "keystride.api",
    "play": "keystride.api",
    "train": "keystride.training.start",
}

__all__ = [
    "Keyframe",
    "Recording",
    "Robot",
    "Script",
    "TaskConfig",
    "TrainingConfig",
    "__version__",
    "evaluate",
    "load_policy",
    "load_robot",
    "load_script",
    "make_env",
    "play",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'keystride' has no attribute {name!r}")
    import_module("keystride.graphics").choose_graphics()  # before mujoco is imported, so that `to_video` can render
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
