"""Fixed scenarios as data: the paper's position goals, full poses from authored clips, courses of the figures, everyday scripts."""

from dataclasses import dataclass
from math import pi, sin

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


@dataclass(frozen=True)
class EverydayScript:
    """A named script that ends with the robot standing still."""

    name: str
    keyframes: tuple[Keyframe, ...]
    seconds_after: float = 5.0  # simulated after the last keyframe
    settle: float = 1.0  # s from the last keyframe until drift is measured

    @property
    def still_from(self) -> float:
        """Return the time from which the robot has to stand still, s."""
        return self.keyframes[-1].time + self.settle


def _at(time: float, x: float, y: float, yaw: float | None = None) -> Keyframe:
    return Keyframe(time=time, position=(x, y), yaw=yaw)


EVERYDAY_SCRIPTS = (
    EverydayScript("stay, one keyframe at 5 s", (_at(5.0, 0.0, 0.0),)),
    EverydayScript("stand 10 s, a keyframe every second", tuple(_at(float(k), 0.0, 0.0) for k in range(1, 11))),
    EverydayScript("5 m in one keyframe, 10 s", (_at(10.0, 5.0, 0.0),)),
    EverydayScript("5 m, a keyframe every second", tuple(_at(float(k), 0.5 * k, 0.0) for k in range(1, 11))),
    EverydayScript("three keyframes 5 s apart", (_at(5.0, 2.0, 0.0), _at(10.0, 3.0, 1.5), _at(15.0, 5.0, 2.0))),
    EverydayScript("turn 180 degrees, one keyframe at 3 s", (_at(3.0, 0.0, 0.0, 180.0),)),
    EverydayScript("30 s after the last keyframe", (_at(1.0, 0.6, 0.0), _at(2.0, 1.3, 0.0)), seconds_after=31.0),
    EverydayScript("backwards 1 m, yaw kept", (_at(3.0, -1.0, 0.0, 0.0),)),
    EverydayScript("behind 1 m, yaw free", (_at(6.0, -1.0, 0.0),)),
    EverydayScript("sideways 0.9 m, yaw kept", (_at(3.0, 0.0, 0.9, 0.0),)),
    EverydayScript("180 degrees on the spot and back", (_at(4.0, 0.0, 0.0, 179.0), _at(8.0, 0.0, 0.0, 0.0))),
    EverydayScript("slalom, 20 keyframes", tuple(_at(float(k), 0.5 * k, 0.3 * sin(k * pi / 3)) for k in range(1, 21))),
    EverydayScript("stop and go", (_at(2.0, 1.0, 0.0), _at(5.0, 1.0, 0.0), _at(7.0, 2.0, 0.0), _at(10.0, 2.0, 0.0))),
    EverydayScript(
        "sit, then walk", (Keyframe(time=2.0, posture="sit"), Keyframe(time=4.0, posture="sit"), _at(9.0, 2.0, 0.0))
    ),
    EverydayScript("stand 30 s", (_at(30.0, 0.0, 0.0),), seconds_after=1.0, settle=-29.0),
)
