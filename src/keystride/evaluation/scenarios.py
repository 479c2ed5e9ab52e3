"""Fixed scenarios as data: the paper's position goals, full poses from authored clips, and the courses of the figures."""

from dataclasses import dataclass

import numpy as np

from keystride import geometry
from keystride.keyframes.goals import CONTROL_DT, Goals, empty_goals
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Keyframe, Script
from keystride.motion.authored.catalogue import CATALOGUE
from keystride.motion.authored.performance import as_clip
from keystride.motion.clip import Clip
from keystride.robot.description import Robot

Waypoint = tuple[int, tuple[float, ...]]  # control step, metres from the start


@dataclass(frozen=True)
class Waypoints:
    """Position goals for a robot that stands at the origin, facing x."""

    name: str
    waypoints: tuple[Waypoint, ...]

    def goals(self, robot: Robot, count: int) -> Goals:
        keyframes = tuple(Keyframe(time=step * CONTROL_DT, position=place) for step, place in self.waypoints)
        return script_goals(Script(keyframes=keyframes), np.zeros((count, 2)), robot=robot)


@dataclass(frozen=True)
class ClipPoses:
    """Full poses of an authored clip at some of its frames, relative to an earlier frame in which the robot stands."""

    name: str
    clip: str
    start: int
    frames: tuple[int, ...]

    def goals(self, robot: Robot, count: int) -> Goals:
        clip = as_clip(robot, self.clip, CATALOGUE[self.clip](robot))
        one = poses_of_clip(clip, self.start, self.frames)
        return one[np.zeros(count, dtype=np.intp)]


def poses_of_clip(clip: Clip, start: int, frames: tuple[int, ...]) -> Goals:
    """Return the full poses of a clip (1, K), transformed so that frame `start` is at the origin, facing x."""
    rows = np.array(frames)
    goals = empty_goals(1, len(rows))
    turn = -geometry.yaw_of(clip.base_orientation[start])
    offset = clip.base_position[rows] - clip.base_position[start] * [1.0, 1.0, 0.0]
    goals.step[0] = rows - start
    goals.position[0] = geometry.rotate_yaw(np.full(len(rows), turn), offset)
    goals.angles[0] = geometry.roll_pitch_yaw(clip.base_orientation[rows])
    goals.angles[0, :, 2] = geometry.wrap(goals.angles[0, :, 2] + turn)
    goals.posture[0] = clip.joint_angles[rows]
    goals.presence[0], goals.height[0] = True, True
    return goals


# The paper's table of keyframe scenarios, converted from its frame (y up, z forward) to ours (x forward, z up).
ANTICIPATION_SCENARIOS = (
    Waypoints("straight", ((50, (1.0, 0.0, 0.32)), (75, (2.0, 0.0, 0.32)))),
    Waypoints("turn", ((50, (1.0, 0.0, 0.32)), (75, (1.5, 1.0, 0.32)))),
    Waypoints("slow turn", ((50, (1.0, 0.0, 0.32)), (100, (1.5, 1.0, 0.32)))),
)

# The paper shows its full poses only as pictures: moving forward, jumping, raising a paw.
MATCHING_SCENARIOS = (
    ClipPoses("walk", "walk_fast", 25, (75, 125)),
    ClipPoses("jump", "jump_forward", 20, (64, 114)),  # at the highest point, and standing again
    ClipPoses("paw up", "paw_up_quick", 24, (74,)),
)

# The paper's position figure: two courses with different numbers of keyframes.
TRAJECTORIES = (
    Waypoints(
        "three keyframes",
        ((45, (0.8, 0.1, 0.32)), (90, (1.4, 0.7, 0.32)), (135, (1.5, 1.5, 0.32))),
    ),
    Waypoints(
        "five keyframes",
        (
            (45, (0.8, -0.1, 0.32)),
            (90, (1.5, -0.5, 0.32)),
            (135, (2.3, -0.6, 0.32)),
            (180, (3.0, -0.2, 0.32)),
            (225, (3.5, 0.4, 0.32)),
        ),
    ),
)

# The paper's timing figure: one goal, due at different times.
TIMING_GOAL = (1.0, 0.4, 0.32)
TIMINGS = tuple(Waypoints(f"{step * CONTROL_DT:g} s", ((step, TIMING_GOAL),)) for step in (40, 60, 90, 130))
