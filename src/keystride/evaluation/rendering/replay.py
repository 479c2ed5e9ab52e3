"""Replay one episode in a single HTML file that works offline."""

import base64
import json
import re
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from keystride.colours import css_variables
from keystride.evaluation.episodes import METRICS, THRESHOLDS
from keystride.evaluation.recording import Recording, ghost_poses
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.description import Floats, Robot
from keystride.robot.model import VisualShape, load_model, visual_shapes

REPLAY_SCRIPTS = ("linear.js", "shapes.js", "shaders.js", "scene.js", "camera.js", "panel.js", "main.js")


def replay_page(recording: Recording) -> str:
    """Return the HTML page."""
    folder = files("keystride.evaluation.rendering") / "replay_page"
    parts = {
        "title": escape(recording.title),
        "style": css_variables() + (folder / "style.css").read_text(encoding="utf-8"),
        "data": _json(replay_data(recording)),
        "script": "\n".join((folder / name).read_text(encoding="utf-8") for name in REPLAY_SCRIPTS),
    }
    page = (folder / "page.html").read_text(encoding="utf-8")
    # A single pass does not search inserted text again, so a label may contain [[script]].
    return re.sub(r"\[\[(\w+)\]\]", lambda mark: parts[mark[1]], page)


def replay_data(recording: Recording) -> dict[str, Any]:
    """Return everything that the page shows, as plain data."""
    return {
        "title": recording.title,
        "policy": recording.policy,
        "step": CONTROL_DT,
        "robot": robot_shapes(recording.robot),
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
    """Return the poses as base64 of little-endian single-precision numbers."""
    return base64.b64encode(poses.astype("<f4").tobytes()).decode()


def _json(data: Any) -> str:
    """Return JSON that is safe inside a script element: no label can close the element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def robot_shapes(robot: Robot) -> dict[str, Any]:
    """Return the robot's bodies in tree order, starting with the base, and its shapes. Metres; quaternions are w x y z."""
    model = load_model(robot)
    base = model.body(robot.base_body).id
    bodies = [_body(model, robot, body, base) for body in range(base, model.nbody)]
    return {"bodies": bodies, "shapes": [_shape(shape, base) for shape in visual_shapes(model)]}


def _body(model: Any, robot: Robot, body: int, base: int) -> dict[str, Any]:
    if body == base:
        return {"parent": -1, "position": [0, 0, 0], "rotation": [1, 0, 0, 0], "joint": -1, "axis": [0, 0, 1]}
    joint = model.joint(int(model.body_jntadr[body]))
    return {
        "parent": int(model.body_parentid[body]) - base,
        "position": _rounded(model.body_pos[body]),
        "rotation": _rounded(model.body_quat[body]),
        "joint": robot.joint_names.index(joint.name),
        "axis": _rounded(joint.axis),
    }


def _shape(shape: VisualShape, base: int) -> dict[str, Any]:
    return {
        "body": shape.body - base,
        "kind": shape.kind,
        "size": _rounded(shape.size),
        "position": _rounded(shape.position),
        "rotation": _rounded(shape.rotation),
        "colour": _rounded(shape.colour[:3]),
        "glow": shape.glow,
    }


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 6) for value in np.asarray(values)]
