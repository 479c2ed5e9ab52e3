"""Start states and keyframes of episodes (paper, training procedure)."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, Goals, with_components
from keystride.motion.library import Indices, Library
from keystride.physics.simulator import StartState
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints, joints_from_feet, standing_height
from keystride.task.config import EverydayRanges, KeyframeRanges, TaskConfig
from keystride.task.rewards import Bools

Steps = NDArray[np.int64]
CALM_SPEED = 0.15  # m/s and rad/s: from slower frames a standing robot can continue
CROUCHING, STANDING_TALL = 0.6, 1.08  # times the standing height
LEAP_HEIGHT = 1.2  # times the standing height: beyond the reach of the legs
APEX_DROP = 0.004  # m below the apex of a leap that its keyframe may be: 28 ms before or after it
LEAP_LEAD = 3  # fewest steps from an episode's start to its leap: some begin in flight, some at the take-off
RARE_POSTURES = ("paw_up", "sit", "lie", "bow", "stretch", "crouch", "look", "sway", "rear")  # tags of clips
BACKWARD_SPEED = -0.2  # m/s
POSTURE_LEAD = (10, 100)  # steps from an episode's start to its rare posture


@dataclass(frozen=True)
class Episodes:
    """n new episodes."""

    start: StartState
    goals: Goals
    frame: Indices  # (n,) frame of the library in which the episode starts
    turn: Floats  # (n,) rad from the clip's heading to the episode's
    follows: Bools  # (n,) starts in a clip, and its keyframes are what comes next in it
    shown: Bools  # (n,) the first keyframe is of a kind that is demonstrated


class EpisodeSampler:
    """Draws start states and keyframes from a library, for a batch of episodes at once."""

    def __init__(self, robot: Robot, library: Library, config: TaskConfig) -> None:
        self.robot, self.library, self.config = robot, library, config
        self.leap_height = LEAP_HEIGHT * float(standing_height(robot, robot.stance))  # m
        self.calm = _calm_frames(library, ahead=config.ranges.interval_steps[1])
        self.leaps = _leap_frames(library, behind=config.ranges.interval_steps[1])
        self.postures = self._with_lead([library.tagged[tag] for tag in RARE_POSTURES if tag in library.tagged])
        self.backward = self._with_lead([backward_frames(library)])

    def _with_lead(self, kinds: list[Indices]) -> list[Indices]:
        """Return the frames of each kind that a clip leads up to, without kinds that have none."""
        frames = (frames[frames - self.library.first[frames] >= POSTURE_LEAD[0]] for frames in kinds)
        return [found for found in frames if len(found)]

    def draw(self, random: np.random.Generator, count: int, random_share: float) -> Episodes:
        """Return new episodes, with random keyframes in `random_share` of those that are of no special kind."""
        ranges, slots = self.config.ranges, self.config.max_keyframes
        chance = random.random(count)
        leap_end = ranges.leap_share
        posture_end = leap_end + ranges.posture_share
        backward_end = posture_end + ranges.backward_share
        leap = (chance < leap_end) & bool(len(self.leaps))
        posture = (leap_end <= chance) & (chance < posture_end) & bool(self.postures)
        backward = (posture_end <= chance) & (chance < backward_end) & bool(self.backward)
        rare = leap | posture | backward
        everyday = ~rare & (1.0 - chance < ranges.everyday_share)
        interval = random.integers(ranges.interval_steps[0], ranges.interval_steps[1] + 1, size=(count, slots))
        reference = rare | (random.random(count) < self.config.reference_start)
        frames = self._start_frames(random, reference)
        interval[leap, 0] = random.integers(LEAP_LEAD, ranges.interval_steps[1] + 1, size=leap.sum())
        frames[leap] = random.choice(self.leaps, leap.sum()) - interval[leap, 0] if leap.any() else 0
        for chosen, kinds in ((posture, self.postures), (backward, self.backward)):
            if chosen.any():
                frames[chosen], interval[chosen, 0] = self._before(random, kinds, int(chosen.sum()))
        if everyday.any():
            interval[everyday] = _log_uniform(random, ranges.everyday.interval_steps, (int(everyday.sum()), slots))
        step = np.cumsum(interval, axis=1)  # (n, K)
        start = _in_clip(self.library, frames, yaw=random.uniform(-np.pi, np.pi, count))
        start = _stand_where(self.robot, start, ~reference)
        at_random = ~rare & ~everyday & (random.random(count) < random_share)
        goals = self._keyframes(random, frames, step, start, at_random, everyday)
        turn = geometry.yaw_of(start.orientation) - geometry.yaw_of(self.library.frames.orientation[frames])
        kinds = {"leap": leap, "posture": posture, "backward": backward}
        shown = np.any([kinds[name] for name in self.config.demonstrate], axis=0) & rare
        return Episodes(start, goals, frames, turn, reference & ~at_random & ~everyday, shown)

    def tails(self, random: np.random.Generator, count: int) -> Steps:
        """Return the control steps (n,) from the last keyframe to the end of an episode."""
        return _log_uniform(random, self.config.tail_steps, (count,))

    def _start_frames(self, random: np.random.Generator, reference: Bools) -> Indices:
        frames = self.library.draw(random, len(reference), ahead=self.config.ranges.interval_steps[1])
        calm = self.calm[random.integers(len(self.calm), size=len(reference))] if len(self.calm) else frames
        return np.where(reference, frames, calm)

    def _before(self, random: np.random.Generator, kinds: list[Indices], count: int) -> tuple[Indices, Steps]:
        """Return frames to start in, and after how many steps a frame of some kind comes; every kind equally often."""
        kind = random.integers(len(kinds), size=count)
        frames = np.array([random.choice(kinds[k]) for k in kind], dtype=np.intp)
        lead = random.integers(POSTURE_LEAD[0], POSTURE_LEAD[1] + 1, size=count)
        lead = np.minimum(lead, frames - self.library.first[frames])
        return frames - lead, lead

    def _keyframes(
        self,
        random: np.random.Generator,
        frames: Indices,
        step: Steps,
        start: StartState,
        at_random: Bools,
        everyday: Bools,
    ) -> Goals:
        ranges, slots = self.config.ranges, self.config.max_keyframes
        count = random.integers(ranges.count[0], ranges.count[1] + 1, size=len(frames))
        goals, fits = _dataset_goals(self.library, frames, step, start)
        goals[at_random] = _random_goals(self.library, random, step, start, ranges)[at_random]
        if everyday.any():
            chosen = StartState(*(getattr(start, field.name)[everyday] for field in fields(StartState)))
            goals[everyday] = _everyday_goals(self.library, random, step[everyday], chosen, ranges.everyday)
        asked = np.arange(slots) < count[:, None]
        presence = _presence(random, len(frames), self.config.goals)[:, None]  # (n, 1, 5)
        used = asked & (fits | at_random[:, None] | everyday[:, None])
        return with_components(goals, used[..., None] & presence)


def _log_uniform(random: np.random.Generator, limits: tuple[int, int], shape: tuple[int, ...]) -> Steps:
    """Return log-uniform whole numbers between the limits."""
    low, high = np.log(limits[0]), np.log(limits[1])
    return np.rint(np.exp(random.uniform(low, high, size=shape))).astype(np.int64)


def backward_frames(library: Library) -> Indices:
    """Return frames of authored clips in which the robot walks backwards: dogs hardly do, but people ask for it."""
    heading = geometry.yaw_of(library.frames.orientation)
    forward = geometry.rotate_yaw(-heading, library.frames.linear_velocity)[:, 0]
    return np.flatnonzero((forward < BACKWARD_SPEED) & library.authored[library.clip])


def _calm_frames(library: Library, ahead: int) -> Indices:
    frames = library.frames
    slow = np.linalg.norm(frames.linear_velocity, axis=1) < CALM_SPEED
    still = np.linalg.norm(frames.angular_velocity, axis=1) < CALM_SPEED
    level = geometry.projected_gravity(frames.orientation)[:, 2] < -0.97
    tall = frames.position[:, 2] > 0.8 * standing_height(library.robot, library.robot.stance)
    roomy = library.last - np.arange(len(library)) >= ahead
    return np.flatnonzero(slow & still & level & tall & roomy)


def _leap_frames(library: Library, behind: int) -> Indices:
    """Return frames near the apex of leaps with at least `behind` frames before them; only authored ones if there are any.

    A Go2 cannot copy the leaps of a real dog without feedback. Elsewhere in a flight, a height alone would not tell when to push off:
    it is passed twice.
    """
    height = library.frames.position[:, 2]
    high = height > LEAP_HEIGHT * standing_height(library.robot, library.robot.stance)
    edges = np.flatnonzero(
        np.diff(high, prepend=False, append=False) | np.diff(library.clip, prepend=-1, append=-1) > 0
    )
    flight = np.searchsorted(edges, np.arange(len(library)), side="right")
    apex = np.zeros(flight.max(initial=0) + 1)
    np.maximum.at(apex, flight, height)
    near = np.flatnonzero(high & (height > apex[flight] - APEX_DROP))
    leaps = near[near - library.first[near] >= behind]
    authored = leaps[library.authored[library.clip[leaps]]]
    return authored if len(authored) else leaps


def _in_clip(library: Library, rows: Indices, yaw: Floats) -> StartState:
    """Return the clips' states at these frames, moved to the origin and turned to face yaw."""
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
    """Return the start states, replaced where chosen by standing still with the same heading."""
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


def _dataset_goals(library: Library, frames: Indices, step: Steps, start: StartState) -> tuple[Goals, Bools]:
    """Return the clips' own poses at the keyframe times, relative to the start state; and which still lie in their clip."""
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
    library: Library, random: np.random.Generator, step: Steps, start: StartState, ranges: KeyframeRanges
) -> Goals:
    """Return a walk in the plane: each keyframe by radius, direction and turn from the previous one, with a random frame's pose."""
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


def _everyday_goals(
    library: Library, random: np.random.Generator, step: Steps, start: StartState, ranges: EverydayRanges
) -> Goals:
    """Return keyframes elsewhere, turns on the spot or staying, as far as time allows; standing at some height, or a frame's pose."""
    shape = step.shape
    seconds = np.diff(step, axis=1, prepend=0) * CONTROL_DT  # (n, K)
    kind = random.choice(3, size=shape, p=ranges.shares)  # elsewhere, on the spot, stay
    chance = random.random(shape)  # anywhere, ahead, or behind
    narrow = np.where(chance < 0.3, 1.0, 1 / 3)
    direction = geometry.wrap(random.uniform(-np.pi, np.pi, size=shape) * narrow + np.where(chance > 0.7, np.pi, 0.0))
    ahead = np.where(np.cos(direction) > 0.0, ranges.speed_ahead, ranges.speed_back)
    speed = 1.0 / np.hypot(np.cos(direction) / ahead, np.sin(direction) / ranges.speed_sideways)
    moving = np.maximum(seconds - ranges.reaction, 0.25 * seconds)
    radius = np.where(kind == 0, speed * moving * random.uniform(0.1, 1.0, size=shape), 0.0)
    most = np.minimum(ranges.turn_rate * moving, np.pi)
    anywhere = random.uniform(-1.0, 1.0, size=shape) * most
    chance = random.random(shape)  # of those that go elsewhere, some keep their yaw and some turn towards their goal
    going = np.where(chance < 0.4, 0.0, np.where(chance < 0.7, np.clip(direction, -most, most), anywhere))
    turn = np.choose(kind, [going, anywhere, np.zeros(shape)])
    first = geometry.yaw_of(start.orientation)[:, None]
    yaw = first + np.cumsum(turn, axis=1)
    heading = np.concatenate([first, yaw[:, :-1]], axis=1) + direction
    strides = radius[..., None] * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    rows = library.draw(random, step.size).reshape(shape)
    position = np.zeros((*shape, 3))
    position[..., :2] = start.position[:, None, :2] + np.cumsum(strides, axis=1)
    position[..., 2] = library.frames.position[rows][..., 2]
    goals = _poses(library, rows, step, position, yaw - geometry.yaw_of(library.frames.orientation[rows]))
    standing = random.random(shape) < ranges.standing_share
    height = random.uniform(*_standing_heights(library.robot, ranges), size=shape)
    goals.position[..., 2] = np.where(standing, height, goals.position[..., 2])
    goals.angles[..., :2] = np.where(standing[..., None], 0.0, goals.angles[..., :2])
    goals.posture[...] = np.where(standing[..., None], standing_posture(library.robot, height), goals.posture)
    return goals


def _standing_heights(robot: Robot, ranges: EverydayRanges) -> tuple[float, float]:
    """Return the lowest and the highest height of the base for everyday keyframes, m."""
    if ranges.height is not None:
        return ranges.height
    nominal = float(standing_height(robot, robot.stance))
    return CROUCHING * nominal, STANDING_TALL * nominal


def standing_posture(robot: Robot, height: Floats) -> Floats:
    """Return joint angles (..., 12) for standing level at a base height (...,), with the feet spread as in the stance."""
    feet = np.broadcast_to(feet_from_joints(robot, robot.stance), (*height.shape, 4, 3)).copy()
    feet[..., 2] = robot.foot_radius - height[..., None]
    return joints_from_feet(robot, feet)[0]


def _poses(library: Library, rows: Indices, step: Steps, position: Floats, turn: Floats) -> Goals:
    """Return full keyframes with the library's poses at rows (n, K), turned about the vertical."""
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


# Shares of these subsets of components with goals="any"; the rest is drawn evenly from all subsets.
COMMON_SUBSETS: tuple[tuple[float, tuple[int, ...]], ...] = (
    (0.4, (1, 1, 1, 1, 1)),
    (0.2, (1, 0, 0, 0, 0)),
    (0.15, (1, 0, 0, 1, 0)),
)


def _presence(random: np.random.Generator, count: int, goals: str) -> Bools:
    """Return which components (n, 5) an episode's keyframes have; at least one."""
    if goals != "any":
        return np.tile(np.array([True, *[goals == "pose"] * 4]), (count, 1))
    subset = random.integers(1, 2 ** len(COMPONENTS), size=count)
    presence = (subset[:, None] >> np.arange(len(COMPONENTS))) % 2 == 1
    chance, edge = random.random(count), 0.0
    for share, subset_bits in COMMON_SUBSETS:
        presence[(chance >= edge) & (chance < edge + share)] = np.array(subset_bits, dtype=bool)
        edge += share
    return presence
