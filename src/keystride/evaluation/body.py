"""What the robot's body does in an evaluation: flight, and how fast the motors turn."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from keystride.evaluation.episodes import NEVER, Rollout
from keystride.evaluation.gait import feet_in_world
from keystride.evaluation.results import Row, Subject, single_row
from keystride.keyframes.goals import CONTROL_DT
from keystride.motion.signals import foot_clearance
from keystride.robot.description import Floats, Robot

AIRBORNE = 0.01  # m under every foot
FLIGHT = 0.15  # s: a leap
SPEED_PERCENTILE = 99.9


def airborne_seconds(robot: Robot, rollout: Rollout) -> Floats:
    """(E,) the longest time with no foot on the ground, up to the end of the episode or to a fall."""
    trace = rollout.trace
    feet = feet_in_world(robot, trace.position, trace.orientation, trace.joint_angles)  # (T, E, 4, 3)
    flying = (foot_clearance(feet, robot) > AIRBORNE).all(axis=-1) & _alive(rollout)
    longest, current = np.zeros(flying.shape[1], dtype=np.int64), np.zeros(flying.shape[1], dtype=np.int64)
    for frame in flying:
        current = (current + 1) * frame
        longest = np.maximum(longest, current)
    return CONTROL_DT * longest.astype(np.float64)


def flight_rows(subject: Subject, robot: Robot, rollout: Rollout) -> list[Row]:
    """How long the robots flew, and the share of them that leapt."""
    seconds = airborne_seconds(robot, rollout)
    figures = {"airborne_s": seconds, "flight_share": (seconds >= FLIGHT - 1e-9).astype(np.float64)}
    return [
        single_row(subject, name, values, episodes=len(seconds), falls=rollout.falls)
        for name, values in figures.items()
    ]


def motor_rows(robot: Robot, suites: Mapping[str, Iterable[Rollout]], policy: str) -> list[Row]:
    """Joint speed (99.9th percentile) as a share of the motor's rating: of each suite, and of all together."""
    shares = {name: [joint_speed_shares(robot, one) for one in rollouts] for name, rollouts in suites.items()}
    shares = {name: np.concatenate(parts) for name, parts in shares.items() if parts}
    if not shares:
        return []
    shares["all suites"] = np.concatenate(list(shares.values()))
    falls = {name: sum(one.falls for one in rollouts) for name, rollouts in suites.items()}
    episodes = {name: sum(len(one.fell) for one in rollouts) for name, rollouts in suites.items()}
    return [
        single_row(
            Subject("motors", name, policy),
            "joint_speed_share",
            np.array([np.percentile(values, SPEED_PERCENTILE)]),
            episodes=episodes.get(name, sum(episodes.values())),
            falls=falls.get(name, sum(falls.values())),
        )
        for name, values in shares.items()
    ]


def joint_speed_shares(robot: Robot, rollout: Rollout) -> NDArray[np.float32]:
    """(n,) of every joint at every control step until the episode ends or the robot falls."""
    speed = np.abs(rollout.trace.joint_velocities) / robot.speed_limit  # (T, E, 12)
    return speed[_alive(rollout)].astype(np.float32).ravel()


def _alive(rollout: Rollout) -> NDArray[np.bool_]:
    """(T, E)"""
    over = np.where(rollout.fell == NEVER, rollout.end, np.minimum(rollout.fell, rollout.end))
    return np.arange(len(rollout.trace.position))[:, None] <= over
