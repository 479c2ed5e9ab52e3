"""The errors of a robot at a keyframe, and the thresholds for meeting it."""

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from keystride.keyframes.goals import Goals, goal_errors
from keystride.robot.description import Floats
from keystride.task.rewards import error_sizes

# In the order of goal COMPONENTS, followed by the height, which is part of the distance but has its own threshold too.
METRICS = ("distance_m", "roll_deg", "pitch_deg", "yaw_deg", "posture_deg", "height_m")


@dataclass(frozen=True)
class Thresholds:
    """The largest errors with which a keyframe counts as met, unless the robot has fallen. Absent components do not count."""

    distance_m: float = 0.15
    roll_deg: float = 10.0
    pitch_deg: float = 10.0
    yaw_deg: float = 15.0
    posture_deg: float = 10.0
    height_m: float = 0.05

    def __str__(self) -> str:
        return (
            f"{self.distance_m:g} m, height {self.height_m:g} m, roll and pitch {self.roll_deg:g} deg, yaw {self.yaw_deg:g} deg, "
            f"posture {self.posture_deg:g} deg"
        )


THRESHOLDS = Thresholds()


def keyframe_errors(goals: Goals, position: Floats, orientation: Floats, joints: Floats) -> Floats:
    """Return the errors (E, K, 6) in the order and units of METRICS, NaN where a keyframe lacks the component.

    The distance is Euclidean, or horizontal if the keyframe has no height. Angle errors are wrapped and absolute, and the
    posture error is the root mean square over the joints. Each of the E poses is compared with all keyframes of its robot.
    """
    sizes = error_sizes(goal_errors(goals, position, orientation, joints))  # m, rad, rad, rad, rad (norm)
    degree = np.degrees(1.0)
    units = np.array([1.0, degree, degree, degree, degree / np.sqrt(joints.shape[-1])])
    errors = np.where(goals.presence, sizes * units, np.nan)
    height = np.abs(goals.position[..., 2] - position[:, None, 2])
    asked = goals.presence[..., 0] & goals.height
    return np.concatenate([errors, np.where(asked, height, np.nan)[..., None]], axis=-1)


def met(errors: Floats, thresholds: Thresholds = THRESHOLDS) -> NDArray[np.bool_]:
    """Return (...,) whether all non-NaN errors (..., 6) are within the thresholds; False if all are NaN."""
    absent = np.isnan(errors)
    within = np.where(absent, 0.0, errors) <= np.array(astuple(thresholds))
    return np.all(within, axis=-1) & ~np.all(absent, axis=-1)
