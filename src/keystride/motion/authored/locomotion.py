"""Walking, trotting, cantering: a list of passages, each a gait at a velocity, performed from standing to standing.

A gait says which foot swings when; a foot lands where it will be needed in the middle of its stance. The trunk follows the
commanded path, plus the sway, bob and tilt that follow from its weight on the stepping feet. Legs are listed front left,
front right, rear left, rear right."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from keystride import geometry
from keystride.geometry import GRAVITY
from keystride.keyframes.inbetween.segments import minimum_jerk
from keystride.motion.authored.performance import (
    MASS_HEIGHT,
    Performance,
    bump,
    local_mean,
    ramps,
    rebound,
    soft_limit,
    stance_load,
    standing_feet,
    sway,
)
from keystride.motion.clip import CLIP_FPS
from keystride.motion.signals import smoothstep
from keystride.motion.tagging import Segment
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import standing_height

SHORTEST_STEP = 0.0005  # m: a foot that would move less stays where it is
FULL_STEP = 0.04  # m: shorter steps are lower, too
TURN_RADIUS = 0.4  # m, lever arm of turning on the spot; larger than that of the feet, for quick short steps


@dataclass(frozen=True)
class Path:
    """The commanded path of the base over the ground, finely sampled in time."""

    t: Floats  # (N,) s
    place: Floats  # (N, 2) m
    heading: Floats  # (N,) rad

    def under(self, spot: Floats, time: float) -> Floats:
        """Return the position (2,) in the world, at a time, of a point (2,) of the moving frame."""
        place = [np.interp(time, self.t, self.place[:, axis]) for axis in range(2)]
        return geometry.rotate_yaw(np.interp(time, self.t, self.heading), spot) + place


@dataclass(frozen=True)
class Swing:
    """A foot in the air, from one foothold to the next."""

    lift: float  # s
    touch: float  # s
    start: Floats  # (2,) m
    end: Floats  # (2,) m
    height: float  # m


def walked_path(t: Floats, velocity: Floats) -> Path:
    """Integrate commanded velocities (N, 3), forward, sideways and turn, from the origin."""
    heading = _integral(t, velocity[:, 2])
    world = geometry.rotate_yaw(heading, velocity[:, :2])  # (N, 2)
    return Path(t, np.stack([_integral(t, world[:, axis]) for axis in range(2)], axis=-1), heading)


def swings_of(path: Path, phase: Floats, duty: Floats, height: Floats, spot: Floats) -> list[Swing]:
    """Return the swings of one foot, whose phase (N,) starts a stance at each whole number, over the whole path.

    A foot lands where its spot (2,) under the moving trunk will be in the middle of the coming stance.
    """
    cycles = np.arange(np.ceil((phase - duty)[0]), np.floor(phase[-1]))
    lifts = np.interp(cycles, phase - duty, path.t)
    touches = np.interp(cycles + 1, phase, path.t)
    leaves = np.append(lifts[1:], np.inf)  # what ends the stance after each touch-down
    swings, foothold = [], spot
    for lift, touch, leave in zip(lifts, touches, leaves, strict=True):
        target = path.under(spot, min((touch + leave) / 2, path.t[-1]))
        length = float(np.hypot(*(target - foothold)))
        if length > SHORTEST_STEP:
            rise = float(np.interp(lift, path.t, height)) * (0.3 + 0.7 * min(length / FULL_STEP, 1.0))
            swings.append(Swing(lift, touch, foothold, target, rise))
            foothold = target
    return swings


def foot_motion(t: Floats, swings: list[Swing], spot: Floats, radius: float) -> Floats:
    """Return the foot's centre (N, 3), which rests on the ground except during swings."""
    feet = np.tile([*spot, radius], (len(t), 1))
    for swing in swings:
        u = (t - swing.lift) / (swing.touch - swing.lift)
        feet[t >= swing.lift, :2] = swing.end
        going = (u > 0) & (u < 1)
        feet[going, :2] = swing.start + np.multiply.outer(smoothstep(u[going]), swing.end - swing.start)
        feet[going, 2] += swing.height * bump(u[going])
    return feet


def foot_load(t: Floats, swings: list[Swing], fade: float = 0.12) -> Floats:
    """Return the load (N,) on the foot in quarters of the robot's weight: 1 when standing and on average over a stride."""
    if not swings:
        return np.ones_like(t)
    load = 1.0 - minimum_jerk((t - swings[0].lift + fade) / fade)
    load += minimum_jerk((t - swings[-1].touch) / fade)
    for before, after in pairwise(swings):
        stance = after.lift - before.touch
        stride = (after.lift + after.touch - before.lift - before.touch) / 2
        load += stride / stance * stance_load((t - before.touch) / stance)
    return load


def _integral(t: Floats, values: Floats) -> Floats:
    steps = 0.5 * (values[1:] + values[:-1]) * np.diff(t)
    return np.concatenate([[0.0], np.cumsum(steps)])


@dataclass(frozen=True)
class Gait:
    """A gait. Pairs are values at its slowest and its fastest speed, interpolated linearly."""

    name: str
    touchdown: tuple[float, float, float, float]  # of each leg, as a share of the stride
    speed: tuple[float, float]  # m/s
    frequency: tuple[float, float]  # strides/s
    duty: tuple[float, float]  # share of the stride on the ground
    lift: tuple[float, float]  # m, height of the swinging foot
    height: tuple[float, float]  # m, of the base


WALK_GAIT = Gait("walk", (0.25, 0.75, 0.0, 0.5), (0.2, 0.8), (1.1, 1.7), (0.72, 0.62), (0.045, 0.06), (0.315, 0.31))
TROT_GAIT = Gait("trot", (0.0, 0.5, 0.5, 0.0), (0.4, 1.6), (1.8, 2.7), (0.6, 0.48), (0.05, 0.07), (0.31, 0.305))
PACE_GAIT = Gait("pace", (0.0, 0.5, 0.0, 0.5), (0.4, 1.2), (1.9, 2.5), (0.6, 0.52), (0.045, 0.06), (0.31, 0.305))
# Right hind, the diagonal pair, left front, then the flight: a canter on the left lead.
CANTER_GAIT = Gait("canter", (0.54, 0.27, 0.27, 0.0), (1.0, 2.0), (2.0, 2.4), (0.44, 0.36), (0.06, 0.08), (0.305, 0.3))


def stepping_speed(velocity: Floats) -> Floats:
    """Return how fast the feet have to move, m/s, for velocities (..., 3) forward, sideways and turn."""
    return np.hypot(velocity[..., 0], velocity[..., 1]) + TURN_RADIUS * np.abs(velocity[..., 2])


def between(pair: tuple[float, float], gait: Gait, speed: Floats) -> Floats:
    """Return a gait's figure at a speed; beyond its range, the nearest."""
    return np.interp(speed, gait.speed, pair)


FINE = 4  # ticks of the fine clock per frame
DT = 1.0 / (CLIP_FPS * FINE)  # s
EASE_SECONDS = 0.6  # s from the standing height to the gait's
TURNING = 0.3  # rad/s: from here on a passage is also tagged as a turn
SPINNING = 2.0  # rad/s
PITCH_SHARE = 0.3  # of the fore-aft moment of the loads turns the trunk; the rest shifts it
ROLL_SHARE = 0.025  # the same from side to side
PITCH_RADIUS = 0.16  # m, radius of gyration
ROLL_RADIUS = 0.09  # m
# Changes of gait load the feet unevenly for a stride or two; real muscles would stiffen.
MOST_TILT = np.radians([4.0, 7.0])  # roll, pitch
MOST_BOB = 0.03  # m
FADE = 0.4  # s
BANK = 0.4  # of a cyclist's lean into a turn


@dataclass(frozen=True)
class Passage:
    """A gait at a velocity in the heading's frame, reached within the ramp and then held."""

    gait: Gait
    seconds: float
    forward: float = 0.0  # m/s
    sideways: float = 0.0  # m/s to the left
    turn: float = 0.0  # rad/s to the left
    ramp: float = 0.8  # s


@dataclass(frozen=True)
class Schedule:
    """The commands of a performance at each of N ticks of the fine clock."""

    t: Floats  # (N,) s
    velocity: Floats  # (N, 3) commanded: forward, sideways, turn
    phase: Floats  # (N, 4) of each leg; a stance starts at each whole number
    duty: Floats  # (N,)
    lift: Floats  # (N,) m
    height: Floats  # (N,) m


def perform(robot: Robot, *score: Passage, lead: float = 0.5, stop: float = 0.8) -> Performance:
    """Stand, go through the passages, slow down within `stop` seconds, and stand."""
    schedule = _schedule(robot, score, lead, stop)
    path = walked_path(schedule.t, schedule.velocity)
    spots = standing_feet(robot)[:, :2]
    swings = _swings(schedule, path, spots)
    feet = [foot_motion(path.t, steps, spot, robot.foot_radius) for steps, spot in zip(swings, spots, strict=True)]
    feet = np.stack(feet, axis=1)  # (N, 4, 3)
    load = np.stack([foot_load(path.t, steps) for steps in swings], axis=-1)  # (N, 4)
    position, angles = trunk_over(path, feet, load, spots, schedule.height)
    frames = slice(0, None, FINE)
    return Performance(position[frames], angles[frames], feet[frames], _segments(score, lead, stop, path.t[-1]))


def _schedule(robot: Robot, score: tuple[Passage, ...], lead: float, stop: float) -> Schedule:
    starts, still = _starts(score, lead)
    last = score[-1].gait
    stepping_ends = still + stop + 1.0 / last.frequency[0]
    t = np.arange(0.0, stepping_ends + EASE_SECONDS + 0.3, DT)
    velocity = _velocity(score, starts, still, stop, t)
    weight = ramps(starts, np.eye(len(score)), np.array([p.ramp for p in score]), t)  # (N, P)
    frequency, duty, lift, height = _figures(score, weight, stepping_speed(velocity))
    active = (t >= lead) & (t < stepping_ends)
    phase = np.cumsum(np.where(active, frequency, 1e-9)) * DT  # the tiny rate keeps it invertible
    phase = phase[:, None] - weight @ _touchdowns(score)  # (N, 4)
    phase += _first_lift(phase[0] - duty[0])
    going = minimum_jerk((t - lead) / EASE_SECONDS) - minimum_jerk((t - stepping_ends + 0.2) / EASE_SECONDS)
    stand = float(standing_height(robot, robot.stance))
    return Schedule(t, velocity, phase, duty, lift, stand + going * (height - stand))


def _starts(score: tuple[Passage, ...], lead: float) -> tuple[Floats, float]:
    """Return the times at which passages begin, and at which the last one ends, s."""
    bounds = lead + np.concatenate([[0.0], np.cumsum([passage.seconds for passage in score])])
    return bounds[:-1], float(bounds[-1])


def _velocity(score: tuple[Passage, ...], starts: Floats, still: float, stop: float, t: Floats) -> Floats:
    rest = np.zeros(3)
    values = np.array([rest, *([p.forward, p.sideways, p.turn] for p in score), rest])
    seconds = np.array([1.0, *(p.ramp for p in score), stop])
    return ramps(np.array([0.0, *starts, still]), values, seconds, t)


def _figures(score: tuple[Passage, ...], weight: Floats, speed: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return frequency, duty, lift and height, (N,) each, blended over the gaits of the passages."""
    gaits = [passage.gait for passage in score]

    def blend(pairs: list[tuple[float, float]]) -> Floats:
        each = [between(pair, gait, speed) for pair, gait in zip(pairs, gaits, strict=True)]
        return np.sum(weight * np.stack(each, axis=-1), axis=-1)

    return (
        blend([gait.frequency for gait in gaits]),
        blend([gait.duty for gait in gaits]),
        blend([gait.lift for gait in gaits]),
        blend([gait.height for gait in gaits]),
    )


def _touchdowns(score: tuple[Passage, ...]) -> Floats:
    """Return touch-downs (P, 4), each within half a stride of the previous passage, so that a blend takes the shorter path."""
    return np.unwrap(np.array([passage.gait.touchdown for passage in score]), axis=0, period=1.0)


def _first_lift(phase: Floats) -> float:
    """Return the shift after which the first of the legs is just about to lift; phases (4,) lift at whole numbers."""
    return float(np.min(np.ceil(phase) - phase)) - 1e-3


def _swings(schedule: Schedule, path: Path, spots: Floats) -> list[list[Swing]]:
    legs = zip(schedule.phase.T, spots, strict=True)
    return [swings_of(path, phase, schedule.duty, schedule.lift, spot) for phase, spot in legs]


def _segments(score: tuple[Passage, ...], lead: float, stop: float, seconds: float) -> tuple[Segment, ...]:
    starts, still = _starts(score, lead)
    bounds = [*starts, still + stop]
    segments = [(0.0, lead, "stand"), (bounds[-1], seconds, "stand")]
    for passage, start, end in zip(score, bounds[:-1], bounds[1:], strict=True):
        segments.append((start, end, passage.gait.name))
        if abs(passage.turn) >= TURNING:
            segments.append((start, end, "turn" if abs(passage.turn) < SPINNING else "spin"))
    return tuple((round(start * CLIP_FPS), round(end * CLIP_FPS), tag) for start, end, tag in sorted(segments))


def trunk_over(path: Path, feet: Floats, load: Floats, spots: Floats, height: Floats) -> tuple[Floats, Floats]:
    """Return (N, 3) position and (N, 3) roll, pitch, yaw of the base over feet (N, 4, 3) that carry loads (N, 4)."""
    dt = float(path.t[1] - path.t[0])
    load = load / local_mean(load.mean(axis=-1), dt)[:, None]
    pressure = _pressure(path, feet, load, spots)  # (N, 2) world
    acceleration = np.gradient(np.gradient(path.place, dt, axis=0), dt, axis=0)  # (N, 2) world
    moment = geometry.rotate_yaw(-path.heading, pressure)  # (N, 2) forward, left
    kept = geometry.rotate_yaw(path.heading, moment * (1.0 - np.array([PITCH_SHARE, ROLL_SHARE])))
    lean = sway(kept + MASS_HEIGHT / GRAVITY * acceleration, dt)
    bob = soft_limit(rebound(GRAVITY * (load.mean(axis=-1, keepdims=True) - 1.0), dt), MOST_BOB)
    tilt = _tilt(moment, geometry.rotate_yaw(-path.heading, acceleration)[:, 1], dt)
    fade = _fade(path.t)[:, None]
    position = np.concatenate([path.place + fade * lean, height[:, None] + fade * bob], axis=-1)
    return position, np.concatenate([fade * tilt, path.heading[:, None]], axis=-1)


def _fade(t: Floats) -> Floats:
    """Return (N,) from 0 to 1 and back at the ends, so that a performance starts and ends exactly standing."""
    return minimum_jerk((t - t[0]) / FADE) * minimum_jerk((t[-1] - t) / FADE)


def _pressure(path: Path, feet: Floats, load: Floats, spots: Floats) -> Floats:
    """Return (N, 2) how far the centre of pressure is from where it is when standing; world, m."""
    heading = np.repeat(path.heading[:, None], 4, axis=1)
    middle = path.place[:, None] + geometry.rotate_yaw(
        heading, np.broadcast_to(spots.mean(axis=0), (*heading.shape, 2))
    )
    return np.mean(load[..., None] * (feet[..., :2] - middle), axis=1)


def _tilt(moment: Floats, inward: Floats, dt: float) -> Floats:
    """Return (N, 2) roll and pitch from the loads' moment (N, 2) and the acceleration to the left (N,)."""
    roll = ROLL_SHARE * GRAVITY / ROLL_RADIUS**2 * moment[:, 1]
    pitch = -PITCH_SHARE * GRAVITY / PITCH_RADIUS**2 * moment[:, 0]
    tilt = soft_limit(rebound(np.stack([roll, pitch], axis=-1), dt), MOST_TILT)
    tilt[:, 0] -= BANK * inward / GRAVITY
    return tilt
