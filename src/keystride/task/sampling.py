"""Where an episode starts, and which keyframes it is asked to meet (paper, training procedure)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.goals import COMPONENTS, Goals, empty_goals
from keystride.motion.library import Indices, Library
from keystride.physics.simulator import StartState
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height
from keystride.task.config import KeyframeRanges, TaskConfig

Bools = NDArray[np.bool_]
CALM_SPEED = 0.15  # m/s and rad/s: frames from which a standing robot can continue
LEAP_HEIGHT = 1.35  # of the standing height: no leg is that long
LEAP_LEAD = 3  # fewest steps from an episode's start to its leap: some begin in flight, some at the take-off


@dataclass(frozen=True)
class Episodes:
    """n new episodes."""

    start: StartState
    goals: Goals


class EpisodeSampler:
    """Draws starts and keyframes from a library, all of a batch at once."""

    def __init__(self, robot: Robot, library: Library, config: TaskConfig) -> None:
        self.robot, self.library, self.config = robot, library, config
        self.calm = _calm_frames(library, ahead=config.ranges.interval_steps[1])
        self.leaps = _leap_frames(library, behind=config.ranges.interval_steps[1])

    def draw(self, random: np.random.Generator, count: int, random_share: float) -> Episodes:
        ranges, slots = self.config.ranges, self.config.max_keyframes
        interval = random.integers(ranges.interval_steps[0], ranges.interval_steps[1] + 1, size=(count, slots))
        leap = random.random(count) < ranges.leap_share * bool(len(self.leaps))
        interval[leap, 0] = random.integers(LEAP_LEAD, ranges.interval_steps[1] + 1, size=leap.sum())
        step = np.cumsum(interval, axis=1)  # (n, K)
        reference = leap | (random.random(count) < self.config.reference_start)
        frames = self._start_frames(random, reference)
        frames[leap] = random.choice(self.leaps, leap.sum()) - step[leap, 0]
        start = _in_clip(self.library, frames, yaw=random.uniform(-np.pi, np.pi, count))
        start = _stand_where(self.robot, start, ~reference)
        goals = self._keyframes(random, frames, step, start, ~leap & (random.random(count) < random_share))
        return Episodes(start, goals)

    def _start_frames(self, random: np.random.Generator, reference: Bools) -> Indices:
        frames = self.library.draw(random, len(reference), ahead=self.config.ranges.interval_steps[1])
        calm = self.calm[random.integers(len(self.calm), size=len(reference))] if len(self.calm) else frames
        return np.where(reference, frames, calm)

    def _keyframes(
        self,
        random: np.random.Generator,
        frames: Indices,
        step: NDArray[np.int64],
        start: StartState,
        at_random: Bools,
    ) -> Goals:
        ranges, slots = self.config.ranges, self.config.max_keyframes
        count = random.integers(ranges.count[0], ranges.count[1] + 1, size=len(frames))
        from_clip, fits = _dataset_goals(self.library, frames, step, start)
        wandering = _random_goals(self.library, random, step, start, ranges)
        asked = np.arange(slots) < count[:, None]
        presence = _presence(random, len(frames), self.config.goals)[:, None]  # (n, 1, 5)
        goals = empty_goals(len(frames), slots)
        goals[~at_random] = from_clip[~at_random]
        goals[at_random] = wandering[at_random]
        used = asked & (fits | at_random[:, None])
        return _masked(goals, step, used[..., None] & presence)


def _calm_frames(library: Library, ahead: int) -> Indices:
    frames = library.frames
    slow = np.linalg.norm(frames.linear_velocity, axis=1) < CALM_SPEED
    still = np.linalg.norm(frames.angular_velocity, axis=1) < CALM_SPEED
    level = geometry.projected_gravity(frames.orientation)[:, 2] < -0.97
    tall = frames.position[:, 2] > 0.8 * standing_height(library.robot, library.robot.stance)
    roomy = library.last - np.arange(len(library)) >= ahead
    return np.flatnonzero(slow & still & level & tall & roomy)


def _leap_frames(library: Library, behind: int) -> Indices:
    """Frames high above the stance with so many frames before them in their clip."""
    high = library.frames.position[:, 2] > LEAP_HEIGHT * standing_height(library.robot, library.robot.stance)
    first = np.searchsorted(library.clip, library.clip)
    return np.flatnonzero(high & (np.arange(len(library)) - first >= behind))


def _in_clip(library: Library, rows: Indices, yaw: Floats) -> StartState:
    """The clip's state at these frames, moved to the origin and turned to face yaw."""
    frames = library.frames[rows]
    position = library.grounded(rows)
    position[:, :2] = 0.0
    turn = yaw - geometry.yaw_of(frames.orientation)
    return StartState(
        position=position,
        orientation=geometry.multiply(geometry.from_yaw(turn), frames.orientation),
        linear_velocity=geometry.rotate_yaw(turn, frames.linear_velocity),
        angular_velocity=frames.angular_velocity,
        joint_angles=np.clip(frames.joint_angles, library.robot.lower, library.robot.upper),
        joint_velocities=frames.joint_velocities,
    )


def _stand_where(robot: Robot, start: StartState, chosen: Bools) -> StartState:
    """The default state where chosen: standing still, facing the same way."""
    pick = chosen[:, None]
    height = float(standing_height(robot, robot.stance))
    return StartState(
        position=np.where(pick, [0.0, 0.0, height], start.position),
        orientation=np.where(pick, geometry.from_yaw(geometry.yaw_of(start.orientation)), start.orientation),
        linear_velocity=np.where(pick, 0.0, start.linear_velocity),
        angular_velocity=np.where(pick, 0.0, start.angular_velocity),
        joint_angles=np.where(pick, robot.stance, start.joint_angles),
        joint_velocities=np.where(pick, 0.0, start.joint_velocities),
    )


def _dataset_goals(
    library: Library, frames: Indices, step: NDArray[np.int64], start: StartState
) -> tuple[Goals, Bools]:
    """The clip's own poses at the keyframe times, seen from where the robot starts; and which still lie in the clip."""
    wanted = frames[:, None] + step  # (n, K)
    last = library.last[frames][:, None]
    rows = np.minimum(wanted, last)
    origin = library.frames[frames]
    turn = geometry.yaw_of(start.orientation) - geometry.yaw_of(origin.orientation)  # (n,)
    offset = library.frames.position[rows] - origin.position[:, None]  # (n, K, 3) clip's world
    position = geometry.rotate_yaw(np.broadcast_to(turn[:, None], rows.shape), offset)
    position[..., :2] += start.position[:, None, :2]
    position[..., 2] = library.frames.position[rows][..., 2]
    return _poses(library, rows, step, position, turn[:, None]), wanted <= last


def _random_goals(
    library: Library, random: np.random.Generator, step: NDArray[np.int64], start: StartState, ranges: KeyframeRanges
) -> Goals:
    """A walk in the plane: each keyframe by radius, direction and turn from the one before; the rest from a random frame."""
    shape = step.shape
    radius = random.uniform(*ranges.radius, size=shape)
    direction = random.uniform(*ranges.direction, size=shape)
    turn = np.cumsum(random.uniform(*ranges.turn, size=shape), axis=1)  # (n, K) from the start's yaw
    yaw = geometry.yaw_of(start.orientation)[:, None] + turn
    heading = np.concatenate([geometry.yaw_of(start.orientation)[:, None], yaw[:, :-1]], axis=1) + direction
    strides = radius[..., None] * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    rows = library.draw(random, step.size).reshape(shape)
    position = np.zeros((*shape, 3))
    position[..., :2] = start.position[:, None, :2] + np.cumsum(strides, axis=1)
    position[..., 2] = library.frames.position[rows][..., 2]
    return _poses(library, rows, step, position, yaw - geometry.yaw_of(library.frames.orientation[rows]))


def _poses(library: Library, rows: Indices, step: NDArray[np.int64], position: Floats, turn: Floats) -> Goals:
    """Full keyframes with the library's poses at rows (n, K), turned about the vertical."""
    angles = geometry.roll_pitch_yaw(library.frames.orientation[rows])
    angles[..., 2] = geometry.wrap(angles[..., 2] + turn)
    return Goals(
        step=step,
        position=position,
        angles=angles,
        posture=library.frames.joint_angles[rows],
        presence=np.ones((*rows.shape, len(COMPONENTS)), dtype=bool),
        height=np.ones(rows.shape, dtype=bool),
    )


def _masked(goals: Goals, step: NDArray[np.int64], presence: Bools) -> Goals:
    """Only the components present; the others hold zeros."""
    return Goals(
        step=step,
        position=goals.position * presence[..., :1],
        angles=goals.angles * presence[..., 1:4],
        posture=goals.posture * presence[..., 4:],
        presence=presence,
        height=presence[..., 0],
    )


# Shares of the subsets that a policy for any goals is trained on; the rest is an even draw over all subsets.
FAVOURITES: tuple[tuple[float, tuple[int, ...]], ...] = (
    (0.4, (1, 1, 1, 1, 1)),
    (0.2, (1, 0, 0, 0, 0)),
    (0.15, (1, 0, 0, 1, 0)),
)


def _presence(random: np.random.Generator, count: int, goals: str) -> Bools:
    """(n, 5) which components an episode's keyframes have; never none."""
    if goals != "any":
        return np.tile(np.array([True, *[goals == "pose"] * 4]), (count, 1))
    subset = random.integers(1, 2 ** len(COMPONENTS), size=count)
    presence = (subset[:, None] >> np.arange(len(COMPONENTS))) % 2 == 1
    lot, edge = random.random(count), 0.0
    for share, favourite in FAVOURITES:
        presence[(lot >= edge) & (lot < edge + share)] = np.array(favourite, dtype=bool)
        edge += share
    return presence
