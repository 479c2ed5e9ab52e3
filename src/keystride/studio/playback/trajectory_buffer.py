"""The simulated trajectory of one robot, one row per control step; it can be truncated and read at any step."""

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from keystride.evaluation.episodes import Trace
from keystride.physics.simulator import State
from keystride.robot.description import Floats

WIDTHS = {
    "position": 3,
    "orientation": 4,
    "joint_angles": 12,
    "joint_velocities": 12,
    "linear_velocity": 3,
    "joint_targets": 12,  # from this step to the next
    "action": 12,
}
ENDS = dict(zip(WIDTHS, accumulate(WIDTHS.values()), strict=True))
COLUMN_SLICES = {name: slice(ENDS[name] - width, ENDS[name]) for name, width in WIDTHS.items()}
NOT_RECORDED = {"angular_velocity": (3,), "feet": (4, 3), "contact": (4,), "torque": (12,)}
STATE = tuple(name for name in WIDTHS if name not in ("joint_targets", "action"))


@dataclass(frozen=True)
class RobotPose:
    """The pose of the robot at one control step."""

    position: Floats  # (3,)
    orientation: Floats  # (4,)
    joints: Floats  # (12,)


class TrajectoryBuffer:
    """States from step 0 to `last`, with the targets and actions that led from each to the next."""

    def __init__(self) -> None:
        self._rows = np.zeros((256, sum(WIDTHS.values())))
        self.last = -1

    def append(self, state: State) -> None:
        self.last += 1
        if self.last == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self.last] = 0.0
        for name in STATE:
            self._rows[self.last, COLUMN_SLICES[name]] = getattr(state, name)[0]

    def choose(self, targets: Floats, action: Floats) -> None:
        """Store the targets and the action (12,) that the controller chose at the last state."""
        self._rows[self.last, COLUMN_SLICES["joint_targets"]] = targets
        self._rows[self.last, COLUMN_SLICES["action"]] = action

    def cut(self, last: int) -> None:
        """Drop everything after a step."""
        self.last = min(self.last, last)

    def column(self, name: str) -> Floats:
        """Return a column (last + 1, width) as a view, which is valid until the next change."""
        return self._rows[: self.last + 1, COLUMN_SLICES[name]]

    def pose(self, step: int) -> RobotPose:
        row = self._rows[min(step, self.last)].copy()
        return RobotPose(
            row[COLUMN_SLICES["position"]], row[COLUMN_SLICES["orientation"]], row[COLUMN_SLICES["joint_angles"]]
        )

    def state(self, step: int) -> State:
        """Return a recorded state; what is not recorded is zero."""
        known = {name: self._rows[step, COLUMN_SLICES[name]][None].copy() for name in STATE}
        nothing = {name: np.zeros((1, *shape)) for name, shape in NOT_RECORDED.items()}
        return State(**known, **nothing, diverged=np.zeros(1, dtype=bool))

    def trace(self) -> Trace:
        """Return a copy in the format of evaluation: states (T + 1, 1, ...) and targets (T, 1, 12)."""
        states = {name: self.column(name)[:, None].copy() for name in STATE}
        return Trace(**states, joint_targets=self.column("joint_targets")[:-1, None].copy())
