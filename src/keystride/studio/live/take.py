"""A recorded take: what the flight log says of a deployment, in the frame of the script, to compare with a forecast."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keystride import geometry
from keystride.deploy.log.flight import read_log
from keystride.deploy.states import DeployState
from keystride.evaluation.errors import METRICS, keyframe_errors
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.robot.description import Floats, Robot

RUNNING_INDEX = list(DeployState).index(DeployState.RUNNING)
PATH_EVERY = 0.1  # s


@dataclass(frozen=True)
class Take:
    path: Floats  # (n, 2) m, from the start of the script
    errors: Floats  # (K, 6) as METRICS; NaN for components that are not asked for, and keyframes that were not reached
    reached: int  # keyframes


def read_take(folder: Path, script: Script, robot: Robot) -> Take | None:
    """Return what a flight log holds of the script; None if it was never begun. FileError if the log cannot be read."""
    rows = read_log(folder).rows
    rows = rows[(rows["state"] == RUNNING_INDEX) & np.isfinite(rows["base_position"]).all(axis=1)]
    if not len(rows):
        return None
    time = rows["time"] - rows["time"][0]  # (T,) s
    position, orientation, joints = (
        rows[name].astype(np.float64) for name in ("base_position", "base_orientation", "joint_angles")
    )
    yaw = np.atleast_1d(geometry.yaw_of(orientation[0]))
    goals = script_goals(script, position[:1], yaw, robot=robot)
    due = goals.step[0] * CONTROL_DT  # (K,) s
    reached = int((due <= time[-1] + CONTROL_DT).sum())
    errors = np.full((len(due), len(METRICS)), np.nan)
    for keyframe in range(reached):
        row = min(int(np.searchsorted(time, due[keyframe])), len(rows) - 1)
        pose = (position[row : row + 1], orientation[row : row + 1], joints[row : row + 1])
        errors[keyframe] = keyframe_errors(goals, *pose)[0, keyframe]
    every = np.searchsorted(time, np.arange(0.0, time[-1], PATH_EVERY))
    offset = position[every, :2] - position[0, :2]
    return Take(geometry.rotate_yaw(np.broadcast_to(-yaw, len(every)), offset), errors, reached)
