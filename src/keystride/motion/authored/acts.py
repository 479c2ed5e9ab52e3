"""Acts: a few key poses on planted feet, eased from one to the next. They start and end standing."""

from dataclasses import dataclass

import numpy as np

from keystride import geometry
from keystride.keyframes.inbetween.legs import minimum_jerk
from keystride.keyframes.postures import Footing, Posture, posture
from keystride.motion.authored.curves import bump
from keystride.motion.authored.performance import Performance, standing_feet
from keystride.motion.clip import CLIP_FPS
from keystride.motion.tagging import Segment
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints

ON_GROUND = 0.003  # m
WORTH_A_STEP = 0.012  # m: a foot that would move less stays, and the leg makes up for it


@dataclass(frozen=True)
class Key:
    """Go to a posture within some seconds, and hold it."""

    pose: str | Footing | Posture  # name of a posture, a footing, or a posture of the robot
    seconds: float
    hold: float = 0.0
    tag: str = ""  # what the robot is doing from the start of the move to the end of the hold; none: as before
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
    """Return the pose in the world: of all places for the base, the one that moves its planted feet least.

    On four feet they are compared with the standing robot's, so that nothing wanders; on fewer, with where they are.
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
    """Feet that change their foothold step one after the other; a foot is only in the air while the others carry it."""
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
    """Progress of trunk and feet: the weight moves off a foot before it rises, and back only when it is down again."""
    if abs(raised) < ON_GROUND:
        return u, u
    first, second = u / SHIFT_SHARE, (u - SHIFT_SHARE) / (1 - SHIFT_SHARE)
    if raised > 0:
        return first, second
    return (u - 1 + SHIFT_SHARE) / SHIFT_SHARE, u / (1 - SHIFT_SHARE)


SHIFT_SHARE = 0.5  # of the time of a move in which a foot rises or comes down
STEP_ORDER = (2, 1, 3, 0)  # a hind foot, then the front foot across


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
