"""Run every fault against the simulated robot, evaluate the robot's own record, and print the table."""

import contextlib
import json
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from keystride import geometry
from keystride.deploy.clock import real_time, real_time_allowed
from keystride.deploy.fault_checks import Limits
from keystride.deploy.guard import BRAKED_WITHIN, GUARD_SENTENCE
from keystride.deploy.log.flight import read_log
from keystride.deploy.preflight import open_player
from keystride.deploy.safety import LONGEST_STEP
from keystride.deploy.selftest.faults import CALM, CASES, GROUPS, KILLED, PLAYED, UNKNOWN_LINE, Case, Disturb
from keystride.deploy.selftest.processes import (
    FULL_DISK,
    NO_LIMIT,
    PROGRAM,
    QUESTION,
    DeployUnderTest,
    RobotProcess,
    WaitingWatch,
    free_port,
    idle_processors,
    reserved_domain,
    reserved_slot,
)
from keystride.deploy.session import GIVE_UP_KEY
from keystride.deploy.sim.rehearsal import rehearse
from keystride.deploy.unitree.codec import LOOPBACK
from keystride.files import write_atomically
from keystride.keyframes.files import save_script
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.description import Floats, Robot

WALK_SCRIPT = Script(
    keyframes=(
        Keyframe(time=1.2, position=(0.36, 0.0)),
        Keyframe(time=2.0, position=(0.6, 0.0)),
    )
)
IMPOSSIBLE = Script(keyframes=(Keyframe(time=0.5, position=(5.0, 0.0)),))
MARGIN = 0.15  # m by which a keyframe error may exceed that of a run in one process without a fault
UPRIGHT_COSINE = 0.5  # cosine of the trunk's tilt
RISE = 0.03  # m by which the trunk may rise while it is brought to a stop
DESCENT = 1.8  # s, shortest time in which a robot lies down under control
KEPT_WAITING = 0.03  # s of delay that may trip a watchdog: the guard's limit is 0.05 s, that of the others 0.1 s
BEFORE_GIVING_UP = 0.2  # s that the operator waits before giving up
LIMP = "the robot lies limp"
AFTERMATH = 0.5  # s of recording after a process was killed
EMPTY_DOMAIN = 230  # DDS domain without a robot
ATTEMPTS = 3
PROCESSORS_PER_CASE = 0.6  # processors that the robot, the deployment and its guard keep busy with real-time priority
PARALLEL = (2, 8)  # smallest and largest number of cases
ROUNDING = 1e-5  # flight logs are stored in single precision
NO_REAL_TIME = (
    "This machine is too busy to keep a robot under control without real-time priority, which this user does not have: "
    "see docs/deploy.md for how to grant it."
)


@dataclass(frozen=True)
class CaseResult:
    name: str
    expected: str
    happened: str
    wrong: tuple[str, ...]  # deviations from the expected outcome
    late: float  # s, longest time for which the machine kept one of the processes waiting
    attempts: int = 1
    released: float | None = None  # s from the fault until no joint was held

    @property
    def passed(self) -> bool:
        return not self.wrong


@dataclass(frozen=True)
class Truth:
    """The simulated robot's record of what really happened."""

    time: Floats  # (T,) s
    position: Floats  # (T, 3)
    orientation: Floats  # (T, 4)
    stiffness: Floats  # (T,) N m/rad, of the stiffest joint
    heard_stiffness: Floats  # (T,) the same for the last command received
    commanded: np.ndarray  # (T,) bool: commands were arriving
    motion_service: np.ndarray  # (T,) bool: the robot's motion service held the motors
    sent: Floats  # (N,) s, when the commands that the robot received were sent, by the sender's clock
    sent_stiffness: Floats  # (N,) N m/rad, of the stiffest joint

    @classmethod
    def read(cls, path: Path) -> "Truth":
        with np.load(path, allow_pickle=False) as file:
            qpos, stiffness, heard = file["qpos"], file["stiffness"], file["heard_stiffness"]
            return cls(
                file["time"],
                qpos[:, :3],
                qpos[:, 3:7],
                stiffness.max(axis=1),
                heard.max(axis=1),
                file["commanded"],
                file["motion_service"],
                file["sent"],
                file["sent_stiffness"],
            )

    def at(self, moment: float) -> int:
        return int(np.abs(self.time - moment).argmin())

    def soft_after(self, moment: float) -> float:
        """Return the seconds until no joint is held, except by the robot's motion service."""
        held = self.time[(np.where(self.motion_service, self.heard_stiffness, self.stiffness)) > 0.0]
        return max(float(held[-1]) - moment, 0.0) if len(held) else 0.0

    @property
    def unattended(self) -> float:
        """Return the longest time from a command that holds joints to the next command, s; infinity if it was the last."""
        waits = np.diff(self.sent, append=np.inf)[self.sent_stiffness > 0.0]
        return float(waits.max(initial=0.0))

    def rise_after(self, moment: float) -> float:
        """Return by how much the trunk rises above its height at the given time, m."""
        return float((self.position[self.at(moment) :, 2] - self.position[self.at(moment), 2]).max())

    def misses(self, script: Script, started: float, robot: Robot) -> Floats:
        """Return the horizontal distance between the robot and each keyframe at its time, (K,) m."""
        start = self.at(started)
        yaw = np.atleast_1d(geometry.yaw_of(self.orientation[start]))
        goals = script_goals(script, self.position[start][None], yaw, robot=robot)
        rows = [self.at(started + keyframe.time) for keyframe in script.keyframes]
        return np.linalg.norm((goals.position[0] - self.position[rows])[:, :2], axis=-1)


@dataclass(frozen=True)
class Run:
    """What happened in one run of a case."""

    lines: list[str]  # output of the deployment
    report: dict[str, Any]  # written by the deployment; empty if it wrote none
    exit_code: int | None  # None if it did not end
    started: float | None  # when the script began, if reported
    caused: float | None  # when the fault was caused
    late: float  # s, longest time for which the machine kept one of the processes waiting

    @property
    def last(self) -> str:
        return next((line for line in reversed(self.lines) if line), "nothing was printed")

    @property
    def reason(self) -> str:
        return str(self.report.get("reason", self.last))


def deploy_words(case: Case, policy: str, script: Path, domain: int, port: int, report: Path) -> list[str]:
    """Return the options of `keystride deploy go2` for a case; its own options replace the usual ones."""
    options = {
        "--policy": policy,
        "--script": str(script),
        "--interface": "lo",
        "--domain": str(domain),
        "--pose": f"udp://127.0.0.1:{port}",
        "--start-after": "0",
        "--settle": "0.2",
        "--report": str(report),
    }
    flags = ["--confirmed"] if case.confirmed else []
    words = list(case.deploy)
    while words:
        name = words.pop(0)
        if words and not words[0].startswith("--"):
            options[name] = words.pop(0)
        else:
            flags.append(name)
    if "--guard" in options:
        reached = {"SECOND": domain, "ELSEWHERE": EMPTY_DOMAIN}[options["--guard"]]
        options["--guard"] = shlex.join([*PROGRAM, "guard", "--interface", "lo", "--domain", str(reached)])
    if "--log" in options:
        options["--log"] = str(report.parent / "log")
    return [*(word for option in options.items() for word in option), *flags]


def run_processes(case: Case, policy: str, script: Path, folder: Path) -> Run:
    """Run a case; the robot's record and the deployment's report are written to the folder."""
    with reserved_slot(parallel_cases(os.cpu_count() or 1)), reserved_domain() as domain:
        return _run_processes(case, policy, script, domain, folder)


def _run_processes(case: Case, policy: str, script: Path, domain: int, folder: Path) -> Run:
    port, report = free_port(), folder / "report.json"
    with contextlib.ExitStack() as ends:  # kill what a failure leaves behind: this process would wait for it for ever
        robot = RobotProcess(case.robot, domain, port, folder / "record.npz")
        ends.callback(robot.process.kill)
        if case.before is not None:
            robot.disturb(case.before)
        limit = FULL_DISK if case.disk_full else NO_LIMIT
        deploy = DeployUnderTest(deploy_words(case, policy, script, domain, port, report), case.output, limit)
        ends.callback(deploy.process.kill)
        watch = WaitingWatch(deploy.output, robot.process.pid or 0, deploy.process.pid or 0)
        ends.callback(watch.close)
        if not case.confirmed and deploy.reaches(QUESTION):
            deploy.key("n\n")
        caused: float | None = None
        if case.does is not None and deploy.reaches(case.after):
            with (
                real_time()
            ):  # a delay between reading the clock and causing the fault would be blamed on the deployment
                time.sleep(max(case.at - deploy.output.marks[case.after].age(), 0.0))
                caused = robot.disturb(case.does) if isinstance(case.does, Disturb) else deploy.act(case.does)
        if case.unknown and case.gives_up and deploy.reaches(UNKNOWN_LINE):
            time.sleep(BEFORE_GIVING_UP)
            deploy.key(GIVE_UP_KEY)
        code = deploy.close(guarded=case.guarded)
        watch.close()  # before the robot leaves real-time priority
        if code == KILLED:
            time.sleep(AFTERMATH)
        robot.close()
    content = json.loads(report.read_text()) if report.exists() else {}
    started = float(content["started"]) if content.get("started") else None
    late = max(watch.worst, lateness(robot.output.lines))
    return Run(deploy.output.lines, content, code, started, caused, late)


def lateness(lines: list[str]) -> float:
    """Return the largest lateness that the simulated robot printed, s; only the machine can delay it."""
    found = re.findall(r"latest step was ([0-9.]+) ms late", "\n".join(lines))
    return max((float(ms) / 1000.0 for ms in found), default=0.0)


def run_case(case: Case, *, robot: Robot, policy: str) -> CaseResult:
    """Run a row. A failed run is repeated if the machine kept a process waiting, because it then proves nothing."""
    for attempt in range(1, ATTEMPTS + 1):
        result = _attempt(case, robot, policy, attempt)
        if result.passed or result.late < KEPT_WAITING:
            break
        print(f"attempt {attempt} of {result.name!r}: {'; '.join(result.wrong)}", file=sys.stderr, flush=True)
    return result


def _attempt(case: Case, robot: Robot, policy: str, attempt: int) -> CaseResult:
    script = IMPOSSIBLE if case.impossible else WALK_SCRIPT
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.yaml"
        save_script(script, path)
        run = run_processes(case, case.policy or policy, path, Path(folder))
        truth = Truth.read(Path(folder) / "record.npz")
        wrong = [*_wrong_end(case, run), *_wrong_motion(case, run, truth)]
        if case.bounded:
            wrong += _wrong_log(case, Path(folder) / "log", robot)
    if case.exit_code == PLAYED and run.started is not None:
        wrong += _wrong_place(truth.misses(WALK_SCRIPT, run.started, robot).max(), calm_miss(robot, policy) + MARGIN)
    if wrong and run.late >= KEPT_WAITING:
        wrong.append(f"the machine kept a process waiting for {1000 * run.late:.0f} ms")
    released = None if run.caused is None else truth.soft_after(run.caused)
    happened = _happened(case, run, truth, robot)
    return CaseResult(case.name, case.expected, happened, tuple(wrong), run.late, attempt, released)


def run_script(script: Path, policy: str, folder: Path) -> tuple[Run, Truth]:
    """Play a script over the network, without a fault; a run that failed is repeated by the same rule."""
    for _ in range(ATTEMPTS):
        run = run_processes(CALM, policy, script, folder)
        if run.exit_code == PLAYED or run.late < KEPT_WAITING:
            break
    return run, Truth.read(folder / "record.npz")


def _wrong_end(case: Case, run: Run) -> Iterator[str]:
    if run.exit_code != case.exit_code:
        yield f"exit code {run.exit_code}, not {case.exit_code}: {' / '.join(run.lines[-3:])}"
    if case.reason and case.reason not in run.reason:
        yield f"the reason is not {case.reason}: {run.reason}"
    if not any(case.prints in line for line in run.lines):
        yield f"{case.prints!r} was not printed"
    if case.unknown is not None and any(line.startswith(UNKNOWN_LINE) for line in run.lines) != case.unknown:
        yield "the robot's state was not called unknown" if case.unknown else "the robot's state was called unknown"


def _wrong_motion(case: Case, run: Run, truth: Truth) -> Iterator[str]:
    if truth.heard_stiffness[-1] > 0.0 and case.still_commanded is not False and not case.held:
        yield "the last command holds a joint"
    if truth.stiffness[-1] > 0.0 and not case.back_to_normal and not case.held:
        yield "a joint is held at the end"
    if truth.stiffness[-1] > 0.0 and any(LIMP in line for line in run.lines):
        yield "the robot was called limp, but a joint is held"
    if case.never_stiff and (truth.heard_stiffness > 0.0).any():
        yield "a motor moved"
    up = -geometry.projected_gravity(truth.orientation)[:, 2]
    if case.upright and up.min() < UPRIGHT_COSINE:
        yield "the robot fell over"
    if case.soft_within is not None and (run.caused is None or truth.soft_after(run.caused) > case.soft_within):
        yield f"joints were held for longer than {case.soft_within} s"
    if case.controlled and run.caused is not None and truth.soft_after(run.caused) < DESCENT:
        yield "the robot was dropped, not laid down"
    if case.guarded:
        yield from _wrong_guard(run, truth)
    if case.no_higher and (run.caused is None or truth.rise_after(run.caused) > RISE):
        yield "the robot rose after it was told to stop"
    if case.still_commanded is not None and truth.commanded[-1] != case.still_commanded:
        yield "no commands arrived" if case.still_commanded else "commands still arrived"
    if case.back_to_normal and not truth.motion_service[-1]:
        yield "the robot's motion service does not hold the motors"


def _wrong_guard(run: Run, truth: Truth) -> Iterator[str]:
    """Yield what is wrong with the time until the brake, according to the robot's record and to the guard's own clock.

    Delays caused by the machine are measured and subtracted, because they are not the guard's fault.
    """
    if truth.unattended > BRAKED_WITHIN + run.late:
        yield f"joints were held for {1000 * truth.unattended:.1f} ms without a command"
    found = [match for line in run.lines if (match := GUARD_SENTENCE.search(line))]
    if not found:
        yield "no guard said that it braked"
    for braked, late in (map(float, match.groups()) for match in found):
        if braked - late > 1000 * BRAKED_WITHIN:
            yield f"a guard braked after {braked:.1f} ms, {late:.1f} ms late by the machine"


def _wrong_log(case: Case, log: Path, robot: Robot) -> Iterator[str]:
    """Yield what is wrong with the commands in a flight log, which has a row for each."""
    limits, rows = Limits(), read_log(log).rows
    driven = np.any(rows["stiffness"], axis=1)
    pairs = driven[1:] & driven[:-1]
    allowed = {"target": limits.target_rate, "stiffness": limits.gain_rate[0], "damping": limits.gain_rate[1]}
    for name, rate in allowed.items():
        change = float(np.abs(np.diff(rows[name].astype(np.float64), axis=0))[pairs].max(initial=0.0))
        if change > rate * LONGEST_STEP + ROUNDING:
            yield f"a command changed the {name} by {change:.3f}, allowed {rate * LONGEST_STEP:.3f}"
    gap = float(np.diff(rows["time"])[pairs].max(initial=0.0))
    leap = float(np.nanmax(np.abs(np.diff(rows["policy_target"], axis=0))))
    if case.stalled and (gap < case.stalled or leap < 2 * limits.target_rate * LONGEST_STEP):
        yield f"the stall was not seen: {1000 * gap:.1f} ms without a command, a leap of {leap:.2f} rad"


def _wrong_place(missed: float, allowed: float) -> Iterator[str]:
    if missed > allowed:
        yield f"a keyframe was missed by {missed:.2f} m, more than {allowed:.2f} m"


@cache
def calm_miss(robot: Robot, policy: str) -> float:
    """Return the largest keyframe error of a policy in one process, m."""
    return float(max(arrival_distances(robot, policy, WALK_SCRIPT)))


def arrival_distances(robot: Robot, policy: str, script: Script) -> list[float]:
    """Return the horizontal error at each keyframe, m, in one process and without a fault."""
    rehearsal = rehearse(robot, open_player(policy, robot, LOOPBACK[0]), script)
    rehearsal.play(script.keyframes[-1].time + 20.0)
    return [float(np.linalg.norm(arrival.error[:2])) for arrival in rehearsal.deployment.arrivals]


def _happened(case: Case, run: Run, truth: Truth, robot: Robot) -> str:
    if case.exit_code == PLAYED and run.started is not None:
        return f"played; largest keyframe error {truth.misses(WALK_SCRIPT, run.started, robot).max():.3f} m"
    if run.caused is None:
        return re.sub(r"error: \S+?: ", "error: ", run.reason)  # drop the name of a temporary file
    words = f"joints released after {truth.soft_after(run.caused):.2f} s, trunk at {truth.position[-1, 2]:.2f} m"
    if case.guarded:
        words += f", at most {1000 * truth.unattended:.0f} ms without a command"
    return f"{run.reason}; {words}" if case.reason else words


def parallel_cases(idle: float) -> int:
    """Return how many cases to run in parallel on this many idle processors."""
    fewest, most = PARALLEL
    return min(max(int(idle / PROCESSORS_PER_CASE), fewest), most)


def run_cases(robot: Robot, policy: str, only: str, jobs: int | None, report: Path | None, *, markdown: bool) -> int:
    """Run the rows and print the table; return 1 if any outcome was not as expected."""
    cases = [case for case in CASES if only in case.name]
    calm_miss(robot, policy)  # computed now, because it would disturb the runs
    with ThreadPoolExecutor(parallel_cases(idle_processors()) if jobs is None else jobs) as pool:
        results = []
        for result in pool.map(partial(run_case, robot=robot, policy=policy), cases):
            results.append(result)
            if not markdown:
                why = f": {'; '.join(result.wrong)}" if result.wrong else ""
                print(f"{'WRONG' if why else 'ok':5s}  {result.name}{why}", flush=True)
    if markdown:
        print(markdown_table(results))
    else:
        print_table(results)
    for line in group_lines(results):
        print(line)
    again = sum(result.attempts > 1 for result in results)
    print(f"{sum(r.passed for r in results)} of {len(results)} rows passed, {again} of them repeated", file=sys.stderr)
    if any(not r.passed and r.late >= KEPT_WAITING for r in results) and not real_time_allowed():
        print(NO_REAL_TIME, file=sys.stderr)
    if report is not None:
        write_atomically(report, json.dumps([asdict(result) for result in results], indent=2))
    return int(not all(result.passed for result in results))


def group_lines(results: list[CaseResult]) -> Iterator[str]:
    """Yield a line per group of rows: how many passed, and the longest time until the joints were released."""
    found = {result.name: result for result in results}
    for group, cases in GROUPS.items():
        ran = [(case, found[case.name]) for case in cases if case.name in found]
        if not ran:
            continue
        line = f"{group}: {sum(result.passed for _, result in ran)} of {len(ran)} rows passed"
        for words, chosen in (
            ("damping at once", [r.released for case, r in ran if case.soft_within is not None]),
            ("lying down first", [r.released for case, r in ran if case.controlled]),
        ):
            times = [seconds for seconds in chosen if seconds is not None]
            line += f"; {words}: joints released within {max(times):.2f} s" if times else ""
        yield line


def markdown_table(results: list[CaseResult]) -> str:
    rows = [["fault", "expected", "what happened", ""], ["---"] * 4]
    rows += [[r.name, r.expected, r.happened, "ok" if r.passed else "; ".join(r.wrong)] for r in results]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def print_table(results: list[CaseResult]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("fault", "expected", "what happened", ""):
        table.add_column(heading)
    for r in results:
        table.add_row(r.name, r.expected, r.happened, "ok" if r.passed else "; ".join(r.wrong))
    Console().print(table)
