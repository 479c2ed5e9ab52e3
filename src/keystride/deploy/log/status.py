"""Reports of a deployment: lines of JSON while it runs, for a program such as the studio, and how it ended.

Each status line is written completely or, if the reader is slow or gone, not at all: nothing here waits.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from keystride import geometry
from keystride.deploy.clock import Ticker
from keystride.deploy.deployment import Deployment
from keystride.deploy.fault_checks import DeployState
from keystride.deploy.pose.estimator import BaseState
from keystride.deploy.session import Outcome
from keystride.files import write_atomically
from keystride.keyframes.goals import used
from keystride.keyframes.resolve import script_goals

STATUS_PERIOD = 0.05  # s


class StatusStream:
    """Writes lines to a file descriptor, or nothing without one."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self._start: BaseState | None = None  # where the script began
        if descriptor is not None:
            os.set_blocking(descriptor, False)

    @contextmanager
    def follow(self, deployment: Deployment) -> Iterator[None]:
        """Write a line every EVERY seconds, on a separate thread."""
        if self._descriptor is None:
            yield
            return
        loop = Ticker("status", STATUS_PERIOD, lambda now: self._write(self._line(deployment, now)), lambda error: None)
        loop.start()
        try:
            yield
        finally:
            loop.stop()

    def report_state(self, deployment: Deployment) -> None:
        """Write one line with the state alone: a dry run has no link and no battery."""
        if self._descriptor is not None:
            self._write({"state": deployment.safety.state.value, "keyframes": len(deployment.arrivals)})

    def end(self, deployment: Deployment, outcome: Outcome) -> None:
        """Write how it ended."""
        if self._descriptor is not None:
            ended = {"played": outcome.played, "damped": outcome.damped, "reason": outcome.reason}
            line = {"state": outcome.state.value, "keyframes": len(deployment.arrivals), "unknown": deployment.unknown}
            self._write(line | {"ended": ended})

    def _line(self, deployment: Deployment, now: float) -> dict[str, Any]:
        low, robot = deployment.latest()
        state = deployment.safety.state
        line: dict[str, Any] = {"state": state.value, "keyframes": len(deployment.arrivals)}
        line["unknown"] = deployment.unknown
        if low is not None:
            age = now - deployment.estimator.last_pose
            line["battery"], line["temperature"] = low.battery, low.motor_temperature
            line["state_age"] = round(now - deployment.heard_at, 3)
            line["pose_age"] = round(age, 3) if np.isfinite(age) else None
        if robot is not None:
            if state in (DeployState.IDLE, DeployState.STANDING_UP, DeployState.READY) or self._start is None:
                self._start = robot.base
            position, orientation = in_script_frame(self._start, robot.base)
            line["position"], line["orientation"] = position.round(4).tolist(), orientation.round(4).tolist()
            line["joints"] = robot.joint_angles.round(4).tolist()
        return line

    def _write(self, line: dict[str, Any]) -> None:
        assert self._descriptor is not None
        with contextlib.suppress(OSError):  # the pipe is full, or nobody reads it
            os.write(self._descriptor, (json.dumps(line, separators=(",", ":")) + "\n").encode())


def in_script_frame(start: BaseState, base: BaseState) -> tuple[np.ndarray, np.ndarray]:
    """Return position (3,) and orientation (4,) in the frame of the script: origin on the ground at the start, x along its heading."""
    yaw = geometry.yaw_of(start.orientation)
    offset = base.position - np.array([start.position[0], start.position[1], 0.0])
    turned = geometry.multiply(geometry.from_yaw(-yaw), base.orientation)
    return geometry.rotate_yaw(-yaw, offset), turned


def outcome_lines(deployment: Deployment, outcome: Outcome) -> Iterator[str]:
    for arrival in deployment.arrivals:
        distance = float(np.linalg.norm(arrival.error[:3]))
        yield f"keyframe {arrival.keyframe + 1}: missed by {distance:.3f} m, by the robot's own estimate"
    for name, late in (("command stream", outcome.stream), ("policy", outcome.control)):
        yield f"{name}: {late.ticks} ticks, the latest one was {1000 * late.worst:.1f} ms late, {late.skipped} skipped"
    if deployment.log is not None:
        if deployment.log.lost:
            yield f"flight log incomplete: {deployment.log.lost} rows were not written ({deployment.log.problem})"
        yield f"flight log: {deployment.log.folder} (keystride deploy replay shows it)"


def write_outcome(path: Path, deployment: Deployment, outcome: Outcome) -> None:
    goals = script_goals(deployment.script, robot=deployment.robot)
    content = {
        "state": outcome.state.value,
        "played": outcome.played,
        "reason": outcome.reason,
        "started": deployment.started,
        "keyframes": int(used(goals).sum()),
        "arrivals": [{"keyframe": a.keyframe, "step": a.step, "error": a.error.tolist()} for a in deployment.arrivals],
        "stream": asdict(outcome.stream),
        "control": asdict(outcome.control),
        "walked": deployment.walked,
        "poses_not_believed": deployment.estimator.rejected,
        "pose_messages_dropped": deployment.source.rejected,
    }
    write_atomically(path, json.dumps(content, indent=2))
