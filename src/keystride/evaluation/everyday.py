"""The everyday suite: scripts as people write them, with long gaps, waiting, turning around and standing still at the end."""

from dataclasses import dataclass
from math import pi, sin

import numpy as np

from keystride import geometry
from keystride.evaluation.episodes import EpisodeRollout, noisy_stance
from keystride.evaluation.results import Row, Subject, rows_of_all_goals, single_row
from keystride.evaluation.suites import Setting, SuiteOutcome
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.description import Floats


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


def everyday(setting: Setting) -> SuiteOutcome:
    """Measure errors, keyframes met, falls, and how far the robot drifts while it has to stand still."""
    rows, rollouts = [], {}
    for script in EVERYDAY_SCRIPTS:
        start = noisy_stance(setting.robot, setting.episodes, setting.random(script.name))
        goals = script_goals(Script(keyframes=script.keyframes), np.zeros((setting.episodes, 2)), robot=setting.robot)
        rollout = setting.run(script.name, setting.contender, start, goals, seconds_after=script.seconds_after)
        rollouts[script.name] = rollout
        rows += _rows(script, rollout, setting.contender.name)
    return SuiteOutcome(rows, rollouts)


def _rows(script: EverydayScript, rollout: EpisodeRollout, policy: str) -> list[Row]:
    subject = Subject("everyday", script.name, policy)
    still = slice(round(script.still_from / CONTROL_DT), None)
    metres, degrees = drift(rollout.trace.position[still], rollout.trace.orientation[still])
    episodes, falls = len(rollout.fell), rollout.falls
    return [
        *rows_of_all_goals(subject, rollout),
        single_row(subject, "drift_m", metres, episodes=episodes, falls=falls),
        single_row(subject, "drift_deg", degrees, episodes=episodes, falls=falls),
    ]


def drift(position: Floats, orientation: Floats) -> tuple[Floats, Floats]:
    """Return the largest horizontal distance (E,) in m and yaw (E,) in degrees from the first of T poses (T, E, ...)."""
    away = np.linalg.norm(position[..., :2] - position[:1, :, :2], axis=-1)
    yaw = geometry.yaw_of(orientation)
    return away.max(axis=0), np.degrees(np.abs(geometry.wrap(yaw - yaw[:1]))).max(axis=0)
