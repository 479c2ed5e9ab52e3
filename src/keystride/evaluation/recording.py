"""The recording of one episode, which can be saved as a replay, a video or a plot."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.evaluation.episodes import (
    METRICS,
    NEVER_FELL,
    SECONDS_AFTER,
    THRESHOLDS,
    Controller,
    EpisodeRollout,
    World,
    exact_stance,
    run_episodes,
)
from keystride.files import write_atomically
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, Goals
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.robot.description import Floats, Robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Recording:
    """One simulated episode: T + 1 poses, T joint targets and K keyframes with their errors."""

    title: str
    policy: str
    robot: Robot
    poses: Floats  # (T + 1, 19) position, orientation w x y z, joint angles
    joint_targets: Floats  # (T, 12) rad
    goals: Goals  # (1, K)
    labels: tuple[str, ...]  # (K,)
    errors: Floats  # (K, 6) in the order of METRICS, NaN where absent
    met: NDArray[np.bool_]  # (K,)
    fell: int  # control step of the fall, or NEVER_FELL

    @property
    def times(self) -> Floats:
        """Return the times of the poses (T + 1,), s."""
        return CONTROL_DT * np.arange(len(self.poses), dtype=np.float64)

    @property
    def steps(self) -> NDArray[np.int64]:
        """Return the control steps (K,) at which keyframes are due."""
        return self.goals.step[0]

    @property
    def angles(self) -> Floats:
        """Return roll, pitch and yaw (T + 1, 3), rad, unwrapped."""
        return np.unwrap(geometry.roll_pitch_yaw(self.poses[:, 3:7]), axis=0)

    @property
    def fell_at(self) -> float | None:
        """Return the time of the fall in s, or None."""
        return None if self.fell == NEVER_FELL else self.fell * CONTROL_DT

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a replay as a self-contained HTML page, and write it to `path` if given."""
        from keystride.evaluation.rendering.replay import replay_page

        page = replay_page(self)
        if path is not None:
            write_atomically(Path(path), page)
        return page

    def to_video(self, path: str | Path, size: tuple[int, int] = (800, 450)) -> None:
        """Render a video (.mp4 or .gif) of `size` (width, height). Needs the `video` extra and off-screen rendering."""
        from keystride.evaluation.rendering.video import write_video

        write_video(self, Path(path), size)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Return a Matplotlib figure of path, height, angles and joints, and write it to `path` (.png, .svg, .pdf) if given."""
        from keystride.evaluation.rendering.plot import draw_recording
        from keystride.plotting import save_figure

        figure = draw_recording(self)
        if path is not None:
            save_figure(figure, Path(path))
        return figure


def play_script(
    controller: Controller,
    robot: Robot,
    script: Script,
    *,
    title: str,
    policy: str,
    inbetween: bool = True,
    seconds_after: float = SECONDS_AFTER,
) -> Recording:
    """Simulate a script with one robot that starts in its stance at the origin, facing x."""
    rollout = run_episodes(
        controller,
        robot,
        exact_stance(robot),
        script_goals(script, robot=robot),
        world=World(threads=1),
        inbetween=inbetween,
        seconds_after=seconds_after,
    )
    labels = tuple(keyframe.label or "" for keyframe in script.keyframes)
    return record(rollout, 0, robot, title=title, policy=policy, labels=labels)


def record(
    rollout: EpisodeRollout, row: int, robot: Robot, *, title: str, policy: str, labels: tuple[str, ...] | None = None
) -> Recording:
    """Return the recording of one robot of a rollout."""
    trace, last = rollout.trace, int(rollout.end[row])
    parts = [values[: last + 1, row] for values in (trace.position, trace.orientation, trace.joint_angles)]
    rows = np.flatnonzero(rollout.goals.presence[row].any(axis=-1))
    return Recording(
        title=title,
        policy=policy,
        robot=robot,
        poses=np.concatenate(parts, axis=1),
        joint_targets=trace.joint_targets[:last, row],
        goals=rollout.goals[np.array([row])][:, rows],
        labels=labels or ("",) * len(rows),
        errors=rollout.errors[row, rows],
        met=rollout.met[row, rows],
        fell=int(rollout.fell[row]),
    )


def ghost_poses(recording: Recording) -> Floats:
    """Return the poses (K, 19) that keyframes ask for, with components they leave open taken from the robot at that time."""
    goals = recording.goals
    poses = recording.poses[np.minimum(recording.steps, len(recording.poses) - 1)].copy()
    asked, presence = goals.position[0], goals.presence[0]
    poses[:, :2] = np.where(presence[:, :1], asked[:, :2], poses[:, :2])
    poses[:, 2] = np.where(goals.height[0], asked[:, 2], poses[:, 2])
    angles = np.where(presence[:, 1:4], goals.angles[0], geometry.roll_pitch_yaw(poses[:, 3:7]))
    poses[:, 3:7] = geometry.from_roll_pitch_yaw(angles)
    poses[:, 7:] = np.where(presence[:, 4:], goals.posture[0], poses[:, 7:])
    return poses


def recording_summary(recording: Recording) -> dict[str, Any]:
    """Return the results that `keystride play --json` writes, without the motion."""
    return {
        "script": recording.title,
        "policy": recording.policy,
        "robot": recording.robot.name,
        "seconds": float(recording.times[-1]),
        "fell_at": recording.fell_at,
        "met": int(recording.met.sum()),
        "thresholds": {name: getattr(THRESHOLDS, name) for name in METRICS},
        "keyframes": [_keyframe(recording, k) for k in range(len(recording.steps))],
    }


def _keyframe(recording: Recording, k: int) -> dict[str, Any]:
    presence = recording.goals.presence[0, k]
    return {
        "number": k + 1,
        "time": round(float(recording.steps[k] * CONTROL_DT), 3),
        "label": recording.labels[k],
        "components": [name for name, there in zip(COMPONENTS, presence, strict=True) if there],
        "met": bool(recording.met[k]),
        "errors": {
            name: float(error) for name, error in zip(METRICS, recording.errors[k], strict=True) if not np.isnan(error)
        },
    }
