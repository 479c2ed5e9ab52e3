"""A replay of one episode as a single HTML file: opens from the disk, asks nothing of the network."""

import base64
import json
import re
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from keystride.evaluation.errors import METRICS, THRESHOLDS
from keystride.evaluation.recording import Recording, ghost_poses
from keystride.evaluation.rendering.shapes import robot_looks
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.description import Floats

SCRIPTS = ("linear.js", "shapes.js", "shaders.js", "scene.js", "camera.js", "panel.js", "main.js")


def replay_page(recording: Recording) -> str:
    folder = files("keystride.evaluation.rendering") / "replay_page"
    parts = {
        "title": escape(recording.title),
        "style": (folder / "style.css").read_text(encoding="utf-8"),
        "data": _json(replay_data(recording)),
        "script": "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS),
    }
    page = (folder / "page.html").read_text(encoding="utf-8")
    # In one pass: what was put in is never searched again, so a label may say [[script]].
    return re.sub(r"\[\[(\w+)\]\]", lambda mark: parts[mark[1]], page)


def replay_data(recording: Recording) -> dict[str, Any]:
    return {
        "title": recording.title,
        "policy": recording.policy,
        "step": CONTROL_DT,
        "robot": robot_looks(recording.robot),
        "poses": _packed(recording.poses),
        "width": recording.poses.shape[1],
        "fell": recording.fell_at,
        "metrics": METRICS,
        "thresholds": [getattr(THRESHOLDS, name) for name in METRICS],
        "keyframes": [_keyframe(recording, k, pose) for k, pose in enumerate(ghost_poses(recording))],
    }


def _keyframe(recording: Recording, k: int, pose: Floats) -> dict[str, Any]:
    errors = [None if np.isnan(error) else round(float(error), 4) for error in recording.errors[k]]
    return {
        "time": round(float(recording.steps[k] * CONTROL_DT), 3),
        "label": recording.labels[k],
        "met": bool(recording.met[k]),
        "errors": errors,
        "pose": [round(float(value), 5) for value in pose],
        "placed": bool(recording.goals.presence[0, k, 0]),
    }


def _packed(poses: Floats) -> str:
    """Little-endian single precision, base64."""
    return base64.b64encode(poses.astype("<f4").tobytes()).decode()


def _json(data: Any) -> str:
    """Safe inside a script element: a label cannot close it."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
