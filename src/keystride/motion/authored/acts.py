"""Acts: a few key poses on planted feet, eased from one to the next; and jumps. All of them start and end standing."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keystride import geometry
from keystride.geometry import GRAVITY
from keystride.keyframes.inbetween.segments import minimum_jerk
from keystride.keyframes.postures import Footing, Posture, posture
from keystride.motion.authored.performance import HORIZONTAL, Performance, bump, cubic, quintic, standing_feet
from keystride.motion.clip import CLIP_FPS
from keystride.motion.tagging import Segment
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints, standing_height

ON_GROUND = 0.003  # m
WORTH_A_STEP = 0.012  # m: a foot that would move less stays, and the leg makes up for it


@dataclass(frozen=True)
class Key:
    """Go to a posture within some seconds, and hold it."""

    pose: str | Footing | Posture  # name of a posture, a footing, or a posture of the robot
    seconds: float
    hold: float = 0.0
    tag: str = ""  # tags from the start of the move to the end of the hold; none: unchanged
    yaw: float = 0.0  # rad, of the trunk over feet that stay


@dataclass(frozen=True)
class Placed:
    """A key pose in the world."""

    base: Floats  # (6,) x y z roll pitch yaw
    feet: Floats  # (4, 3)


def perform_act(robot: Robot, *keys: Key, lead: float = 0.4, settle: float = 0.4, back: float = 0.8) -> Performance:
    """Stand, go through the keys, and return to standing within `back` seconds."""
    standing = Key("stand", back, settle, "stand")
    score = [Key("stand", 0.0, lead, "stand"), *keys, standing]
    placed = [place_key(robot, score[0], standing_feet(robot))]
    for key in score[1:]:
        placed.append(place_key(robot, key, placed[-1].feet))
    parts = [_rest(placed[0], lead)]
    for before, after, key in zip(placed[:-1], placed[1:], score[1:], strict=True):
        parts += [_move(before, after, key.seconds), _rest(after, key.hold)]
    base, feet = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return Performance(base[:, :3], base[:, 3:], feet, _segments(score))


def place_key(robot: Robot, key: Key, feet_now: Floats) -> Placed:
    """Return the pose in the world, placing the base so that its planted feet move least.

    On four feet they are compared with the standing robot's, which prevents drift; on fewer, with their present places.
    """
    pose = posture(key.pose, robot)
    tilt = geometry.from_roll_pitch_yaw(np.array([pose.roll, pose.pitch, 0.0]))
    feet = geometry.rotate(tilt, feet_from_joints(robot, pose.joints))  # (4, 3) from the base
    feet[:, 2] += pose.height
    planted = feet[:, 2] < robot.foot_radius + ON_GROUND
    spots = standing_feet(robot) if planted.all() else feet_now
    middle = np.mean((spots - feet)[planted, :2], axis=0)
    feet[:, :2] += middle
    near = planted & (np.hypot(*(feet - spots)[:, :2].T) < WORTH_A_STEP)
    feet[near] = spots[near]
    return Placed(np.array([*middle, pose.height, pose.roll, pose.pitch, key.yaw]), feet)


def _rest(pose: Placed, seconds: float) -> tuple[Floats, Floats]:
    frames = round(seconds * CLIP_FPS)
    return np.tile(pose.base, (frames, 1)), np.tile(pose.feet, (frames, 1, 1))


def _move(before: Placed, after: Placed, seconds: float) -> tuple[Floats, Floats]:
    """Move feet to new footholds one after the other; a foot is only in the air while the others carry the robot."""
    frames = round(seconds * CLIP_FPS)
    u = np.arange(1, frames + 1) / frames
    trunk, paws = _turns(u, float((after.feet - before.feet)[:, 2].sum()))
    base = before.base + np.multiply.outer(minimum_jerk(trunk), after.base - before.base)
    feet = before.feet + np.multiply.outer(minimum_jerk(paws), after.feet - before.feet)
    stepping = [leg for leg in STEP_ORDER if _steps(before.feet[leg], after.feet[leg])]
    for turn, leg in enumerate(stepping):
        feet[:, leg] = _step(before.feet[leg], after.feet[leg], u * len(stepping) - turn)
    return base, feet


def _turns(u: Floats, raised: float) -> tuple[Floats, Floats]:
    """Return the progress of trunk and feet: weight moves off a foot before it lifts, and back only once it is down again."""
    if abs(raised) < ON_GROUND:
        return u, u
    first, second = u / SHIFT_SHARE, (u - SHIFT_SHARE) / (1 - SHIFT_SHARE)
    if raised > 0:
        return first, second
    return (u - 1 + SHIFT_SHARE) / SHIFT_SHARE, u / (1 - SHIFT_SHARE)


SHIFT_SHARE = 0.5  # share of the time of a move in which a foot rises or comes down
STEP_ORDER = (2, 1, 3, 0)  # a hind foot, then the diagonally opposite front foot


def _steps(before: Floats, after: Floats) -> bool:
    level = abs(after[2] - before[2]) < ON_GROUND
    return level and bool(np.any(after[:2] != before[:2]))


def _step(before: Floats, after: Floats, u: Floats) -> Floats:
    foot = before + np.multiply.outer(minimum_jerk(u), after - before)
    foot[:, 2] += (0.015 + 0.2 * float(np.hypot(*(after - before)[:2]))) * bump(u)
    return foot


def _segments(score: list[Key]) -> tuple[Segment, ...]:
    segments, time = [], 0.0
    for key in score:
        end = time + key.seconds + key.hold
        tag = key.tag or segments[-1][2]
        segments.append((round(time * CLIP_FPS), round(end * CLIP_FPS), tag))
        time = end
    return tuple(segments)


TICK = 1e-4  # s, for velocities by differences

_Curve = Callable[[Floats], Floats]
_State = tuple[float, float, float]  # value, velocity, acceleration


@dataclass(frozen=True)
class Jump:
    """A jump. Heights are those of the base."""

    apex: float = 0.5  # m
    forward: float = 0.0  # m/s in the flight
    turn: float = 0.0  # rad in total
    pose: str = "tuck"  # the posture at the apex, whose pitch it also defines
    spin: float = 0.0  # rad/s, rate of the pitch in flight, nose down
    crouch: float = 0.2  # m
    release: float = 0.335  # m, height at which the feet leave the ground and meet it again
    lean: float = 0.4  # share of the path over the planted feet by which the base first leans back
    overrun: float = 0.4  # overshoot of the base as a share of the braking distance
    lead: float = 0.4  # s of standing before and after
    lower: float = 0.5  # s from standing into the crouch
    push: float = 0.2  # s
    absorb: float = 0.26  # s
    recover: float = 0.6  # s

    @property
    def takeoff(self) -> float:
        return float(np.sqrt(2 * GRAVITY * (self.apex - self.release)))  # m/s upwards

    @property
    def flight(self) -> float:
        return 2 * self.takeoff / GRAVITY  # s

    @property
    def times(self) -> Floats:
        """Return the start times of crouch, push, flight, absorption and recovery, and the end, s."""
        return np.cumsum([self.lead, self.lower, self.push, self.flight, self.absorb, self.recover])


def perform_jump(robot: Robot, jump: Jump) -> Performance:
    frames = int(np.ceil((jump.times[-1] + jump.lead) * CLIP_FPS))
    t = np.arange(frames) / CLIP_FPS
    base = _base(robot, jump, t)
    return Performance(base[:, :3], base[:, 3:], _feet(robot, jump, t), _jump_segments(jump, frames))


def _base(robot: Robot, jump: Jump, t: Floats) -> Floats:
    """Return (T, 6) x y z roll pitch yaw."""
    still = np.zeros_like(t)
    return np.stack(
        [_advance(jump, t), still, _height(robot, jump, t), still, _pitch(robot, jump, t), _yaw(jump, t)], axis=-1
    )


def _height(robot: Robot, jump: Jump, t: Floats) -> Floats:
    stand = float(standing_height(robot, robot.stance))
    up, down = (jump.release, jump.takeoff, 0.0), (jump.release, -jump.takeoff, 0.0)
    course = Course(stand, jump.crouch, up, down, jump.crouch + 0.03, stand, fall=GRAVITY)
    return course.at(jump, t)


def _advance(jump: Jump, t: Floats) -> Floats:
    """Return the forward motion: a little back in the crouch, then at full speed from take-off to landing."""
    ahead = jump.forward * jump.push / 2  # m, over the feet while pushing off
    back = -jump.lean * ahead
    up = (back + ahead, jump.forward, 0.0)
    down = (up[0] + jump.forward * jump.flight, jump.forward, 0.0)
    braking = jump.forward * jump.absorb / 2
    stop = down[0] + braking
    return Course(0.0, back, up, down, stop, stop - jump.overrun * braking).at(jump, t)


def _pitch(robot: Robot, jump: Jump, t: Floats) -> Floats:
    """Return the pitch, which changes at a constant rate in the air."""
    apex, half = posture(jump.pose, robot).pitch, jump.spin * jump.flight / 2
    return Course(0.0, 0.0, (apex - half, jump.spin, 0.0), (apex + half, jump.spin, 0.0), 0.0, 0.0).at(jump, t)


def _yaw(jump: Jump, t: Floats) -> Floats:
    """Return the yaw: at a constant rate in the air, built up while pushing off and lost while landing."""
    rate = jump.turn / (jump.flight + (jump.push + jump.absorb) / 2)
    up = (rate * jump.push / 2, rate, 0.0)
    down = (rate * (jump.push / 2 + jump.flight), rate, 0.0)
    return Course(0.0, 0.0, up, down, jump.turn, jump.turn).at(jump, t)


@dataclass(frozen=True)
class Course:
    """One coordinate of the base through all phases: where it rests, and its state at take-off and at landing."""

    start: float
    crouch: float
    up: _State
    down: _State
    give: float  # at the end of the landing
    end: float
    fall: float = 0.0  # acceleration downwards in the flight

    def at(self, jump: Jump, t: Floats) -> Floats:
        pieces: tuple[_Curve, ...] = (
            lambda s: self.start + (self.crouch - self.start) * minimum_jerk(s / jump.lower),
            lambda s: quintic((self.crouch, 0.0, 0.0), self.up, jump.push, s),
            lambda s: self.up[0] + self.up[1] * s - self.fall / 2 * s**2,
            lambda s: quintic(self.down, (self.give, 0.0, 0.0), jump.absorb, s),
            lambda s: self.give + (self.end - self.give) * minimum_jerk(s / jump.recover),
        )
        values = np.full(len(t), self.start)
        for begin, curve in zip(jump.times, pieces, strict=False):
            later = t >= begin
            values[later] = curve(t[later] - begin)
        return values


def _feet(robot: Robot, jump: Jump, t: Floats) -> Floats:
    """Return the feet (T, 4, 3): planted until take-off, in the pose of the apex halfway, planted again after landing."""
    _, _, fly, land, recover, _ = jump.times
    start = standing_feet(robot)
    rest = _base(robot, jump, np.array([recover + jump.recover]))[0]
    end = geometry.rotate_yaw(np.full(4, rest[5]), start) + rest[:3] * HORIZONTAL
    feet = np.where((t <= fly)[:, None, None], start, end)
    flying = (t > fly) & (t < land)
    feet[flying] = _from_heading(
        _base(robot, jump, t[flying]), _legs_in_flight(robot, jump, start, end, t[flying] - fly)
    )
    return feet


def _legs_in_flight(robot: Robot, jump: Jump, start: Floats, end: Floats, t: Floats) -> Floats:
    """Return (T, 4, 3) feet from the base, in the heading's frame: they leave and meet the ground without sliding on it."""
    _, _, fly, land, _, _ = jump.times
    first, first_rate = _seen_from_base(robot, jump, start, fly)
    last, last_rate = _seen_from_base(robot, jump, end, land)
    middle, half = _hanging(robot, posture(jump.pose, robot)), jump.flight / 2
    still = np.zeros_like(middle)
    rising = cubic((first, first_rate), (middle, still), half, np.minimum(t, half))
    falling = cubic((middle, still), (last, last_rate), half, np.maximum(t - half, 0.0))
    return np.where((t < half)[:, None, None], rising, falling)


def _seen_from_base(robot: Robot, jump: Jump, feet: Floats, time: float) -> tuple[Floats, Floats]:
    """Return planted feet (4, 3) and their velocities in the frame of the moving heading."""
    around = _base(robot, jump, time + np.array([-TICK, TICK]))  # (2, 6)
    seen = geometry.rotate_yaw(np.repeat(-around[:, 5:], 4, axis=1), feet - around[:, None, :3])  # (2, 4, 3)
    return (seen[0] + seen[1]) / 2, (seen[1] - seen[0]) / (2 * TICK)


def _from_heading(base: Floats, legs: Floats) -> Floats:
    return base[:, None, :3] + geometry.rotate_yaw(np.repeat(base[:, 5:], 4, axis=1), legs)


def _hanging(robot: Robot, pose: Posture) -> Floats:
    """Return (4, 3) the posture's feet from the base, in the heading's frame."""
    tilt = geometry.from_roll_pitch_yaw(np.array([pose.roll, pose.pitch, 0.0]))
    return geometry.rotate(tilt, feet_from_joints(robot, pose.joints))


def _jump_segments(jump: Jump, frames: int) -> tuple[Segment, ...]:
    first, last = round(jump.times[0] * CLIP_FPS), round(jump.times[-1] * CLIP_FPS)
    return (0, first, "stand"), (first, last, "jump"), (last, frames, "stand")
