"""The three steps to the robot: a dry run, the simulated robot, the robot, each with the current script.

A step opens when the previous one has played the same script with the same policy to its end. The flight log of a
deployment is read as a take, in the frame of the script, to compare with the forecast."""

import hashlib
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from keystride import geometry
from keystride.deploy.fault_checks import DeployState
from keystride.deploy.log.flight import read_log
from keystride.deploy.selftest.processes import free_port, reserved_domain
from keystride.errors import FileError
from keystride.evaluation.episodes import METRICS, keyframe_errors
from keystride.keyframes.files import format_script, save_script
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.robot.catalogue import load_robot
from keystride.robot.description import Floats, Robot
from keystride.studio.live.deploy_process import GIVE_UP, LIE_DOWN_KEY, START_KEY, DeployProcess

DRY_RUN, SIMULATED_ROBOT, REAL_ROBOT = LIVE_STEPS = ("dry run", "simulated robot", "robot")
TAKES = ".keystride-takes"  # beside the scripts
KEPT_TAKES = 20
REFUSED = "refused"  # nothing was moved
PAGE_TIMEOUT = 10.0  # s; a page that is silent for longer could not stop the robot, so the robot is stopped
RUNNING_INDEX = list(DeployState).index(DeployState.RUNNING)
PATH_EVERY = 0.1  # s
UNATTENDED = 60.0  # s after its page has gone for which a deployment that was stopped may still wait for an operator

_free = threading.Lock()  # held during a deployment; shared by all sessions


@dataclass(frozen=True)
class Take:
    """Path and errors from the flight log of a deployment, in the frame of the script."""

    path: Floats  # (n, 2) m, from the start of the script
    errors: Floats  # (K, 6) as METRICS; NaN for open components and keyframes that were not reached
    reached: int  # number of keyframes


@dataclass(frozen=True)
class Show:
    """A script with the policy and the settings to play it with."""

    script: Script
    policy: str
    inbetween: bool = True
    despite_warnings: bool = False

    @property
    def fingerprint(self) -> str:
        parts = (format_script(self.script), self.policy, str(self.inbetween), str(self.despite_warnings))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class PassedSteps:
    """Which steps were passed, and with which show."""

    def __init__(self) -> None:
        self._passed: dict[str, str] = {}

    def passed(self, step: str, show: Show | None) -> bool:
        # The fingerprint covers the whole script: too slow for every frame, so look up the step first.
        return show is not None and step in self._passed and self._passed[step] == show.fingerprint

    def is_open(self, step: str, show: Show | None) -> bool:
        """Return whether a step may be started. The first one always may, if there is a script."""
        if show is None:
            return False
        row = LIVE_STEPS.index(step)
        return row == 0 or (self.is_open(LIVE_STEPS[row - 1], show) and self.passed(LIVE_STEPS[row - 1], show))

    def record(self, step: str, show: Show) -> None:
        self._passed[step] = show.fingerprint


@dataclass(frozen=True)
class Target:
    """The robot that the studio was started for, and the steps passed, shared by all browsers.

    No value comes from a page.
    """

    interface: str | None = None  # network interface; None for no robot
    pose: str = "odometry"
    domain: int = 0
    passed_steps: PassedSteps = field(default_factory=PassedSteps)


class LiveRun:
    """The deployments of one browser, one at a time.

    `emergency`, `page_seen` and `close` may be called from any thread, the rest only from the session's.
    """

    def __init__(self, target: Target, folder: Path, page_timeout: float = PAGE_TIMEOUT) -> None:
        self.passed_steps = target.passed_steps
        self.step = ""  # current or last one
        self.outcome = ""  # of the last step
        self._unknown = ""  # after the last step
        self.take: Take | None = None
        self.played: Show | None = None
        self._target, self._folder, self._page_timeout = target, folder, page_timeout
        self._process: DeployProcess | None = None
        self._said: list[str] = []
        self._lock = threading.Lock()
        self._take_folder: Path | None = None
        self._page_seen = 0.0

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def busy(self) -> bool:
        """Whether the studio runs a deployment, for this or another browser."""
        return _free.locked()

    @property
    def has_robot(self) -> bool:
        return self._target.interface is not None

    @property
    def status(self) -> dict[str, Any]:
        return self._process.status if self._process is not None else {}

    @property
    def unknown(self) -> str:
        """Why the robot's state is unknown, from the deployment or after it; empty if it is known."""
        return str(self.status.get("unknown", "")) if self.running else self._unknown

    @property
    def lines(self) -> list[str]:
        """Output of the current or last deployment."""
        return list(self._process.lines) if self._process is not None else self._said

    def is_open(self, step: str, show: Show | None) -> bool:
        return self.passed_steps.is_open(step, show) and (step != REAL_ROBOT or self.has_robot)

    def begin(self, step: str, show: Show) -> None:
        """Start a step. Raise ValueError if it is not open, or if another deployment is running."""
        if not self.is_open(step, show):
            raise ValueError(f"the step before {step} has not been passed with this script, so it is not open yet")
        if not _free.acquire(blocking=False):
            raise ValueError("another deployment is running in this studio")
        try:
            self._take_folder = self._new_take(step)
            script = self._take_folder / "script.yaml"
            save_script(show.script, script)
            self._process = self._start(step, show, script, self._take_folder)
        except BaseException:
            _free.release()
            raise
        self.step, self.played, self.outcome, self.take = step, show, "", None
        self._unknown = ""
        self.page_seen()

    def page_seen(self) -> None:
        """Note that the page is alive."""
        self._page_seen = time.monotonic()

    def press_start(self) -> None:
        if self._process is not None:
            self._process.press(START_KEY)

    def lie_down(self) -> None:
        if self._process is not None:
            self._process.press(LIE_DOWN_KEY)

    def give_up(self) -> None:
        """Stop braking a robot whose state is unknown; afterwards, stop saying that it is."""
        if self._process is not None:
            self._process.press(GIVE_UP)
        self._unknown = ""

    def emergency(self) -> None:
        process = self._process
        if process is not None:
            process.emergency()

    def poll(self) -> bool:
        """Check on the deployment; return whether it has just ended."""
        process = self._process
        if process is None:
            return False
        if process.running:
            if time.monotonic() - self._page_seen > self._page_timeout and not process.stopped:
                process.emergency()
            return False
        if not self._let_go(process):  # closed by another thread
            return False
        _free.release()
        self._said = list(process.lines)
        assert self.played is not None
        if process.exit_code == 0:
            self.passed_steps.record(self.step, self.played)
        self.outcome = _outcome(process, self.step)
        self._unknown = _left_unknown(process) if self.step == REAL_ROBOT else ""
        if self.step != DRY_RUN and not self.outcome.startswith(REFUSED):  # no flight log otherwise
            self._read_take()
        return True

    def close(self) -> None:
        """Stop the deployment, because the browser is gone or the studio ends; it brakes and ends by itself."""
        process = self._process
        if process is not None and self._let_go(process):
            process.close()
            threading.Thread(target=_release_after, args=(process,), daemon=True).start()

    def _let_go(self, process: DeployProcess) -> bool:
        """Give up the process; return whether it was still ours, as `poll` and `close` run in different threads."""
        with self._lock:
            mine = self._process is process
            self._process = None if mine else self._process
        return mine

    def _start(self, step: str, show: Show, script: Path, folder: Path) -> DeployProcess:
        options = deploy_options(step, show, script, folder / "log", self._target)
        if step != SIMULATED_ROBOT:
            return DeployProcess(options)
        with reserved_domain() as domain:
            port, link = str(free_port()), ["--interface", "lo", "--domain", str(domain)]
            options += [*link, "--pose", f"udp://127.0.0.1:{port}"]
            return DeployProcess(options, ["--domain", str(domain), "--pose-port", port])

    def _new_take(self, step: str) -> Path:
        """Create a folder for the script and the flight log; delete the oldest ones."""
        takes = self._folder / TAKES
        takes.mkdir(exist_ok=True)
        for old in sorted(path for path in takes.iterdir() if path.is_dir())[: -KEPT_TAKES + 1]:
            shutil.rmtree(old, ignore_errors=True)
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.monotonic_ns() % 10**6:06d}-{step.replace(' ', '-')}"
        folder = takes / name
        folder.mkdir()
        return folder

    def _read_take(self) -> None:
        assert self.played is not None
        assert self._take_folder is not None
        try:
            robot = load_robot("go2")  # the only robot that can be deployed to
            self.take = read_take(self._take_folder / "log", self.played.script, robot)
        except FileError as error:
            self.outcome += f"; no flight log: {error}"

    @property
    def take_folder(self) -> Path | None:
        """Folder of the flight log of the last deployment."""
        return self._take_folder / "log" if self._take_folder is not None and self.take is not None else None


def deploy_options(step: str, show: Show, script: Path, log: Path, target: Target) -> list[str]:
    """Return the options of `keystride deploy go2` for a step; the simulated robot also needs an interface and poses.

    Script and policy are passed as values, and the robot's options come from the command line, none from a page.
    """
    words = ["--policy", show.policy, "--script", str(script), "--confirmed"]
    words += [] if show.inbetween else ["--no-inbetween"]
    words += ["--doubtful", "--outside-training"] if show.despite_warnings else []
    if step == DRY_RUN:
        return [*words, "--dry-run"]
    words += ["--log", str(log)]
    if step == SIMULATED_ROBOT:
        return [*words, "--start-after", "1", "--settle", "0.5"]
    assert target.interface is not None
    return [*words, "--interface", target.interface, "--domain", str(target.domain), "--pose", target.pose]


def _outcome(process: DeployProcess, step: str) -> str:
    if process.exit_code == 0:
        return "played to its end"
    ended = process.ended or {}
    last = process.lines[-1] if process.lines else "no output"
    reason = ended.get("reason") or last.removeprefix("error: ")
    if _crashed(process):
        stopped = step == DRY_RUN and process.stopped  # the key ends the program, because it moves nothing
        return "stopped: emergency stop" if stopped else f"ended unexpectedly: exit code {process.exit_code}"
    return f"{'stopped' if process.stopped or ended else REFUSED}: {reason}"


def _crashed(process: DeployProcess) -> bool:
    """Return whether a deployment that had begun ended without saying how."""
    return "state" in process.status and process.ended is None


def _left_unknown(process: DeployProcess) -> str:
    """Return why the state of the robot is unknown after a deployment; empty if it is known."""
    return "the deployment ended unexpectedly" if _crashed(process) else str(process.status.get("unknown", ""))


def _release_after(process: DeployProcess) -> None:
    if not process.wait(UNATTENDED):
        process.hang_up()
        process.wait(None)
    _free.release()


def read_take(folder: Path, script: Script, robot: Robot) -> Take | None:
    """Read a take from a flight log; None if the script was never started. Raise FileError if the log is unreadable."""
    rows = read_log(folder).rows
    rows = rows[(rows["state"] == RUNNING_INDEX) & np.isfinite(rows["base_position"]).all(axis=1)]
    if not len(rows):
        return None
    time = rows["time"] - rows["time"][0]  # (T,) s
    position, orientation, joints = (
        rows[name].astype(np.float64) for name in ("base_position", "base_orientation", "joint_angles")
    )
    yaw = np.atleast_1d(geometry.yaw_of(orientation[0]))
    goals = script_goals(script, position[:1], yaw, robot=robot)
    due = goals.step[0] * CONTROL_DT  # (K,) s
    reached = int((due <= time[-1] + CONTROL_DT).sum())
    errors = np.full((len(due), len(METRICS)), np.nan)
    for keyframe in range(reached):
        row = min(int(np.searchsorted(time, due[keyframe])), len(rows) - 1)
        pose = (position[row : row + 1], orientation[row : row + 1], joints[row : row + 1])
        errors[keyframe] = keyframe_errors(goals, *pose)[0, keyframe]
    every = np.searchsorted(time, np.arange(0.0, time[-1], PATH_EVERY))
    offset = position[every, :2] - position[0, :2]
    return Take(geometry.rotate_yaw(np.broadcast_to(-yaw, len(every)), offset), errors, reached)
