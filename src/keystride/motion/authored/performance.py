"""A performance: where base and feet are in the world, frame by frame. The legs follow by inverse kinematics."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from keystride import geometry
from keystride.motion.clip import CLIP_FPS, Clip, make_clip
from keystride.motion.tagging import Segment
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints, joints_from_feet, standing_height

REACH_TOLERANCE = 1e-6  # m
HORIZONTAL = np.array([1.0, 1.0, 0.0])


@dataclass(frozen=True)
class Performance:
    """World frame; feet are the centres of the foot spheres, so that a foot on the ground is one radius high."""

    position: Floats  # (T, 3) base, m
    angles: Floats  # (T, 3) roll, pitch, yaw (unwrapped), rad
    feet: Floats  # (T, 4, 3) m
    segments: tuple[Segment, ...]

    def __len__(self) -> int:
        return len(self.position)


def standing_feet(robot: Robot) -> Floats:
    """Return (4, 3) the feet of the standing robot, on the ground, with the base above the origin."""
    feet = feet_from_joints(robot, robot.stance)
    return np.concatenate([feet[:, :2], np.full((4, 1), robot.foot_radius)], axis=1)


def stand_still(robot: Robot, seconds: float) -> Performance:
    frames = round(seconds * CLIP_FPS)
    position = np.tile([0.0, 0.0, float(standing_height(robot, robot.stance))], (frames, 1))
    feet = np.tile(standing_feet(robot), (frames, 1, 1))
    return Performance(position, np.zeros((frames, 3)), feet, ((0, frames, "stand"),))


def join_performances(*parts: Performance) -> Performance:
    """One after the other; each begins where and in the heading in which the one before ended."""
    return reduce(_append, parts)


def _append(first: Performance, second: Performance) -> Performance:
    heading = first.angles[-1, 2] - second.angles[0, 2]
    origin = second.position[0] * HORIZONTAL
    target = first.position[-1] * HORIZONTAL
    position = _moved(second.position, heading, origin, target)[1:]  # the frame in which they meet is shared
    feet = _moved(second.feet, heading, origin, target)[1:]
    angles = second.angles[1:] + np.array([0.0, 0.0, heading])
    shift = len(first) - 1
    later = tuple((start + shift, end + shift, tag) for start, end, tag in second.segments)
    return Performance(
        np.concatenate([first.position, position]),
        np.concatenate([first.angles, angles]),
        np.concatenate([first.feet, feet]),
        first.segments + later,
    )


def _moved(points: Floats, heading: float, origin: Floats, target: Floats) -> Floats:
    turn = np.full(points.shape[:-1], heading)
    return geometry.rotate_yaw(turn, points - origin) + target


def as_clip(robot: Robot, name: str, performance: Performance) -> Clip:
    """Return the clip, if the robot's legs reach every foot within their limits."""
    orientation = geometry.from_roll_pitch_yaw(performance.angles)
    arms = performance.feet - performance.position[:, None, :]
    joints, miss = joints_from_feet(robot, geometry.rotate_inverse(orientation[:, None, :], arms))
    _require_reach(robot, name, miss)
    metadata = {
        "source": "authored",
        "licence": "Apache-2.0",
        "tags": sorted({tag for _, _, tag in performance.segments}),
        "segments": [list(segment) for segment in performance.segments],
        "edits": {},
    }
    return make_clip(name, robot, performance.position, orientation, joints, metadata)


def _require_reach(robot: Robot, name: str, miss: Floats) -> None:
    if miss.max() <= REACH_TOLERANCE:
        return
    frame, leg = np.unravel_index(np.argmax(miss), miss.shape)
    what = f"the {robot.leg_names[leg]} foot is {1000 * miss[frame, leg]:.1f} mm out of reach"
    raise ValueError(f"{name}: at {frame / CLIP_FPS:.2f} s {what}")
