"""Which step is open, what a flight log says of a script, and processes that are stopped."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystride import geometry
from keystride.deploy.fault_checks import DeployState
from keystride.deploy.log.flight import FlightLog
from keystride.keyframes.files import load_script
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.live.deploy_process import DeployProcess
from keystride.studio.live.live_run import (
    DRY_RUN,
    KEPT_TAKES,
    LIVE_STEPS,
    REAL_ROBOT,
    SIMULATED_ROBOT,
    TAKES,
    LiveRun,
    PassedSteps,
    Show,
    Target,
    deploy_options,
    read_take,
)

PATIENCE = 120.0  # s: the machine may be busy
WALK = Script(keyframes=(Keyframe(time=0.5, position=(0.2, 0.0)), Keyframe(time=1.0, position=(0.4, 0.0), yaw=0.0)))
SHOW = Show(WALK, "go2-position")
TOO_FAST = Show(Script(keyframes=(Keyframe(time=0.5, position=(5.0, 0.0)),)), "STUB-TROT")


def test_a_step_opens_when_the_one_before_was_passed_with_the_same_script_and_policy():
    passed = PassedSteps()
    others = [
        Show(Script(keyframes=WALK.keyframes[:1]), SHOW.policy),
        Show(WALK, "go2-pose"),
        Show(WALK, SHOW.policy, inbetween=False),
        Show(WALK, SHOW.policy, despite_warnings=True),
    ]
    assert [passed.is_open(step, SHOW) for step in LIVE_STEPS] == [True, False, False]
    passed.record(DRY_RUN, SHOW)
    assert [passed.is_open(step, SHOW) for step in LIVE_STEPS] == [True, True, False]
    passed.record(SIMULATED_ROBOT, SHOW)
    assert [passed.is_open(step, SHOW) for step in LIVE_STEPS] == [True, True, True]
    for other in others:
        assert [passed.is_open(step, other) for step in LIVE_STEPS] == [True, False, False]
    assert not any(passed.is_open(step, None) for step in LIVE_STEPS)
    passed.record(DRY_RUN, others[0])  # back to the other script, and forth
    assert [passed.is_open(step, SHOW) for step in LIVE_STEPS] == [True, False, False]


@given(steps=st.lists(st.sampled_from(LIVE_STEPS)))
def test_no_order_of_steps_opens_the_robot_without_both_before(steps: list[str]):
    passed = PassedSteps()
    for step in steps:
        if passed.is_open(step, SHOW):
            passed.record(step, SHOW)
    if passed.is_open(REAL_ROBOT, SHOW):
        assert steps.index(DRY_RUN) < len(steps) - 1 - steps[::-1].index(SIMULATED_ROBOT)


def test_without_an_interface_there_is_no_robot(tmp_path: Path):
    for target, is_open in ((Target(), False), (Target("eth0"), True)):
        live = LiveRun(target, tmp_path)
        live.passed_steps.record(DRY_RUN, SHOW)
        live.passed_steps.record(SIMULATED_ROBOT, SHOW)
        assert live.is_open(REAL_ROBOT, SHOW) == is_open
        with pytest.raises(ValueError, match="not open"):
            LiveRun(Target("eth0"), tmp_path).begin(REAL_ROBOT, SHOW)
    assert list(tmp_path.iterdir()) == []


def test_a_page_chooses_only_the_step(tmp_path: Path):
    """Script and policy are values of options; interface, poses and domain come from the command line."""
    target, script, log = Target("eth9", "vicon://host/body", 7), tmp_path / "script.yaml", tmp_path / "log"
    assert deploy_options(REAL_ROBOT, SHOW, script, log, target) == [
        *("--policy", "go2-position", "--script", str(script), "--confirmed", "--log", str(log)),
        *("--interface", "eth9", "--domain", "7", "--pose", "vicon://host/body"),
    ]
    hostile = Show(WALK, "--interface=lo", inbetween=False, despite_warnings=True)
    assert deploy_options(DRY_RUN, hostile, script, log, target) == [
        *("--policy", "--interface=lo", "--script", str(script), "--confirmed", "--no-inbetween"),
        *("--doubtful", "--outside-training", "--dry-run"),
    ]


def test_a_robot_that_cannot_be_reached_is_refused(tmp_path: Path):
    show = Show(WALK, "go2-position", despite_warnings=True)
    live = LiveRun(Target("nowhere0"), tmp_path)
    live.passed_steps.record(DRY_RUN, show)
    live.passed_steps.record(SIMULATED_ROBOT, show)
    assert ended(live, show, REAL_ROBOT) == "refused"
    assert "no network interface nowhere0" in live.outcome
    assert "flight log" not in live.outcome
    assert not live.passed_steps.passed(REAL_ROBOT, show)
    assert not live.running
    (take,) = (tmp_path / TAKES).iterdir()
    assert load_script(take / "script.yaml") == WALK


def test_a_dry_run_is_passed_and_a_refused_one_is_not(tmp_path: Path):
    live = LiveRun(Target(), tmp_path)
    assert ended(live, TOO_FAST) == "refused"
    assert "m/s from a standstill exceeds the robot's limit" in live.outcome
    assert not live.is_open(SIMULATED_ROBOT, TOO_FAST)
    assert ended(live, Show(WALK, "STUB-TROT")) == "played to its end"
    assert live.is_open(SIMULATED_ROBOT, Show(WALK, "STUB-TROT"))


def ended(live: LiveRun, show: Show, step: str = DRY_RUN) -> str:
    live.begin(step, show)
    with pytest.raises(ValueError, match="another deployment"):
        live.begin(step, show)
    until = time.monotonic() + PATIENCE
    while not live.poll():
        live.page_seen()
        assert time.monotonic() < until
        time.sleep(0.05)
    return live.outcome.split(":")[0]


def test_a_page_that_falls_silent_ends_the_deployment(tmp_path: Path):
    live = LiveRun(Target(), tmp_path, page_timeout=0.0)
    live.begin(DRY_RUN, Show(WALK, "STUB-TROT"))
    until = time.monotonic() + PATIENCE
    while not live.poll():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert live.outcome.startswith("stopped")
    assert not live.passed_steps.passed(DRY_RUN, Show(WALK, "STUB-TROT"))


def test_only_the_latest_takes_are_kept(tmp_path: Path):
    for day in range(KEPT_TAKES + 5):
        (tmp_path / TAKES / f"20200101-{day:06d}-000000-dry-run").mkdir(parents=True)
    assert ended(LiveRun(Target(), tmp_path), TOO_FAST) == "refused"
    names = sorted(path.name for path in (tmp_path / TAKES).iterdir())
    assert len(names) == KEPT_TAKES
    assert names[0] == "20200101-000006-000000-dry-run"


def test_an_emergency_while_it_starts_is_not_lost():
    process = DeployProcess(["--policy", "STUB-TROT", "--script", "walk", "--dry-run"])
    process.emergency()
    assert process.wait(PATIENCE)
    assert process.exit_code != 0


def write_log(folder: Path, yaw: float, miss: float, seconds: float) -> None:
    """A robot that starts somewhere in the room and walks ahead at 0.4 m/s, to the left of its way by `miss`."""
    log = FlightLog(folder, {})
    for tick in range(round(seconds / 0.002)):
        ahead = np.array([0.4 * tick * 0.002, miss * (tick > 0)])
        row = log.row()
        row["time"], row["state"] = 100.0 + 0.002 * tick, list(DeployState).index(DeployState.RUNNING)
        row["base_position"] = [*(np.array([3.0, -2.0]) + geometry.rotate_yaw(np.array(yaw), ahead)), 0.3]
        row["base_orientation"] = geometry.from_yaw(np.array(yaw))
        row["joint_angles"] = GO2.stance
    log.close()


def test_a_take_is_seen_from_where_the_script_began(tmp_path: Path):
    write_log(tmp_path / "log", yaw=2.0, miss=0.05, seconds=2.0)
    take = read_take(tmp_path / "log", WALK, GO2)
    assert take is not None
    assert take.reached == 2
    np.testing.assert_allclose(take.errors[:, 0], 0.05, atol=1e-3)
    np.testing.assert_allclose(take.errors[1, 3], 0.0, atol=1e-3)
    assert np.isnan(take.errors[0, 3])  # no yaw was asked for
    np.testing.assert_allclose(take.path[10], [0.4, 0.05], atol=2e-3)


def test_a_take_that_was_stopped_has_no_errors_beyond(tmp_path: Path):
    write_log(tmp_path / "log", yaw=0.0, miss=0.0, seconds=0.7)
    take = read_take(tmp_path / "log", WALK, GO2)
    assert take is not None
    assert take.reached == 1
    assert np.isnan(take.errors[1]).all()


def test_a_robot_that_never_began_has_no_take(tmp_path: Path):
    log = FlightLog(tmp_path / "log", {})
    log.row()["time"] = 1.0
    log.close()
    assert read_take(tmp_path / "log", WALK, GO2) is None
