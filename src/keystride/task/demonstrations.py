"""Clips as demonstrations: actions that replay a clip without feedback, where that works on this robot."""

import numpy as np

from keystride import geometry
from keystride.motion.library import Indices, Library
from keystride.physics.simulator import CpuSimulator, StartState, State
from keystride.robot.description import Floats, Robot
from keystride.task.rewards import Bools
from keystride.task.sampling import RARE_POSTURES, backward_frames

TARGET_LEAD = 0.0275  # s by which joint targets run ahead of the clip: a PD servo lags behind its target
REPLAY_STEPS = 60  # control steps of one replay
REPLAY_STRIDE = 10  # frames from one replay's start to the next
GOOD_STEPS = 12  # control steps for which a replay must stay close after a frame that is to be imitated
RUN_UP = 40  # frames before a rare motion that are replayed too
RARE_TAGS = ("jump", *RARE_POSTURES)

LARGEST_BEND = (
    0.35  # rad, root mean square over the joints: in a push-off a servo lags by that much and the leap still succeeds
)
LARGEST_DROP = 0.1  # m of height
LARGEST_TILT = 0.35  # rad


def replay_action(robot: Robot, library: Library, rows: Indices) -> Floats:
    """Return actions (n, 12) that take a robot from these frames (n,) to the next ones of their clips."""
    following = np.minimum(rows + 1, library.last[rows])
    frames = library.frames[following]
    target = frames.joint_angles + TARGET_LEAD * frames.joint_velocities
    return (target - robot.stance) / robot.action_scale


def near_reference(library: Library, rows: Indices, state: State, bend: float, drop: float) -> Bools:
    """Return whether joints and height match the frames (n,) within `bend` rad (root mean square) and `drop` m; (n,)."""
    frames = library.frames[rows]
    joints = np.sqrt(np.mean((state.joint_angles - frames.joint_angles) ** 2, axis=1))
    return (joints < bend) & (np.abs(state.position[:, 2] - frames.position[:, 2]) < drop)


def replayable_frames(robot: Robot, library: Library) -> Bools:
    """Return which frames (N,) of rare motions can be replayed without feedback: the robot stays close to the clip for a while.

    This is measured in simulation: a clip whose replay fails is not a demonstration, however good it looks.
    """
    good = np.zeros(len(library), dtype=bool)
    starts = _starts(library)
    if not len(starts):
        return good
    simulator = CpuSimulator(robot, len(starts), threads=1)
    simulator.reset(np.arange(len(starts)), _start_in(library, starts))
    close = np.ones((REPLAY_STEPS, len(starts)), dtype=bool)
    for step in range(REPLAY_STEPS):
        action = replay_action(robot, library, np.minimum(starts + step, library.last[starts]))
        target = np.clip(robot.stance + robot.action_scale * action, robot.lower, robot.upper)
        close[step] = _close(library, np.minimum(starts + step + 1, library.last[starts]), simulator.advance(target))
    unbroken = np.logical_and.accumulate(close, axis=0)
    for step in range(REPLAY_STEPS - GOOD_STEPS):
        rows = starts + step
        good[rows[unbroken[step + GOOD_STEPS] & (rows <= library.last[starts])]] = True
    return good


def _starts(library: Library) -> Indices:
    """Return every tenth frame of authored rare motions and their lead-ups; few motions of a real dog can be replayed."""
    wanted = np.zeros(len(library), dtype=bool)
    nothing = np.zeros(0, dtype=np.intp)
    for rare in (*(library.tagged.get(tag, nothing) for tag in RARE_TAGS), backward_frames(library)):
        frames = rare[library.authored[library.clip[rare]]]
        for lead in range(0, RUN_UP + 1, REPLAY_STRIDE):
            wanted[np.maximum(frames - lead, library.first[frames])] = True
    wanted &= (np.arange(len(library)) - library.first) % REPLAY_STRIDE == 0
    return np.flatnonzero(wanted & (library.last - np.arange(len(library)) > GOOD_STEPS))


def _start_in(library: Library, rows: Indices) -> StartState:
    frames = library.frames[rows]
    return StartState(
        position=library.grounded(rows),
        orientation=frames.orientation,
        linear_velocity=frames.linear_velocity,
        angular_velocity=frames.angular_velocity,
        joint_angles=np.clip(frames.joint_angles, library.robot.lower, library.robot.upper),
        joint_velocities=frames.joint_velocities,
    )


def _close(library: Library, rows: Indices, state: State) -> Bools:
    gravity = geometry.projected_gravity(library.frames.orientation[rows])
    cosine = np.sum(gravity * geometry.projected_gravity(state.orientation), axis=1)
    upright = np.arccos(np.clip(cosine, -1.0, 1.0)) < LARGEST_TILT
    return near_reference(library, rows, state, LARGEST_BEND, LARGEST_DROP) & upright & ~state.diverged
