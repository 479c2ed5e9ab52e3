"""What was simulated for one robot, control step by control step: a growing table that can be cut and read anywhere."""

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
    "joint_targets": 12,  # chosen at this step; they lead to the next
    "action": 12,
}
ENDS = dict(zip(WIDTHS, accumulate(WIDTHS.values()), strict=True))
COLUMN_SLICES = {name: slice(ENDS[name] - width, ENDS[name]) for name, width in WIDTHS.items()}
STATE = tuple(name for name in WIDTHS if name not in ("joint_targets", "action"))


@dataclass(frozen=True)
class RobotPose:
    """The robot at one moment."""

    position: Floats  # (3,)
    orientation: Floats  # (4,)
    joints: Floats  # (12,)


class TrajectoryBuffer:
    """States 0 to last; the choices that led from each to the next."""

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
        """What the controller does at the last state; (12,) each."""
        self._rows[self.last, COLUMN_SLICES["joint_targets"]] = targets
        self._rows[self.last, COLUMN_SLICES["action"]] = action

    def cut(self, last: int) -> None:
        """Forget everything after that step."""
        self.last = min(self.last, last)

    def column(self, name: str) -> Floats:
        """(last + 1, width) a view: not to be kept."""
        return self._rows[: self.last + 1, COLUMN_SLICES[name]]

    def pose(self, step: int) -> RobotPose:
        row = self._rows[min(step, self.last)].copy()
        return RobotPose(
            row[COLUMN_SLICES["position"]], row[COLUMN_SLICES["orientation"]], row[COLUMN_SLICES["joint_angles"]]
        )

    def trace(self) -> Trace:
        """As evaluation has it: (T + 1, 1, ...) states and (T, 1, 12) targets, copied."""
        states = {name: self.column(name)[:, None].copy() for name in STATE}
        return Trace(**states, joint_targets=self.column("joint_targets")[:-1, None].copy())
