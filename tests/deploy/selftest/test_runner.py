"""Faults of processes, terminals and the start, with real processes over DDS on the loopback interface, in real time.

`keystride deploy selftest` runs all rows like this; those of states and poses are tested faster in test_faults.py.
"""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")

from keystride.deploy.clock import real_time_allowed
from keystride.deploy.selftest.faults import BEFORE, CALM, NETWORK, PLAYED, PROCESS, STANDING_UP_LINE, Act
from keystride.deploy.selftest.runner import (
    KEPT_WAITING,
    WALK_SCRIPT,
    CaseResult,
    arrival_distances,
    calm_miss,
    parallel_cases,
    run_case,
    run_processes,
    run_script,
)
from keystride.keyframes.files import load_script, save_script
from keystride.policy.bundle import known
from keystride.robot.go2 import GO2

EXAMPLES = Path(__file__).parents[3] / "examples"
POLICY = known()[0] if known() else "STUB-TROT"  # the stub stands in until a policy ships
MARGIN = 0.15  # m between what a keyframe is missed by over the network and in one process
CASES = (*PROCESS, *BEFORE, *NETWORK[:3])


@pytest.fixture(scope="module")
def results() -> dict[str, CaseResult]:
    calm_miss(GO2, "STUB-TROT")  # before the clock matters
    with ThreadPoolExecutor(parallel_cases(os.cpu_count() or 1)) as pool:
        found = pool.map(partial(run_case, robot=GO2, policy="STUB-TROT"), CASES)
        return {result.name: result for result in found}


def skip_if_kept_waiting(late: float) -> None:
    """Skip what failed in every attempt because the machine was too busy, where it cannot be told to put the robot first.

    What a deployment delays by itself, for example by blocking, does not count as waiting: see test_processes.py.
    """
    if late >= KEPT_WAITING and not real_time_allowed():
        pytest.skip(f"no permission for real-time priority, and the kernel kept a process waiting for {late:.2f} s")


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_a_fault_has_its_expected_outcome(results, name):
    result = results[name]
    if result.wrong:
        skip_if_kept_waiting(result.late)
    assert result.wrong == ()


def test_a_case_that_fails_to_run_leaves_no_process_behind(tmp_path):
    """The self-test would wait for it for ever instead of showing the failure."""
    broken = replace(CALM, name="broken", does=Act("juggle"), after=STANDING_UP_LINE, at=0.0)
    script = tmp_path / "script.yaml"
    save_script(WALK_SCRIPT, script)
    with pytest.raises(KeyError, match="juggle"):
        run_processes(broken, "STUB-TROT", script, tmp_path)
    assert not [child for child in multiprocessing.active_children() if child.join(5.0) or child.is_alive()]


def test_as_many_cases_run_in_parallel_as_idle_processors_allow():
    assert [parallel_cases(idle) for idle in (0.0, 1.7, 2.0, 4.0, 64.0)] == [2, 2, 3, 6, 8]


def test_over_the_network_as_in_one_process(tmp_path):
    """The walk script, from the ground to the ground, judged by the simulators' truth."""
    script = load_script(EXAMPLES / "walk.yaml")
    expected = arrival_distances(GO2, POLICY, script)
    run, truth = run_script(EXAMPLES / "walk.yaml", POLICY, tmp_path)
    if run.exit_code != PLAYED:
        skip_if_kept_waiting(run.late)
    assert run.exit_code == PLAYED, "\n".join(run.lines)
    assert run.started is not None
    missed = truth.misses(script, run.started, GO2)
    print(f"{POLICY}: missed by {np.round(expected, 3)} m in one process, {np.round(missed, 3)} m over DDS")
    assert np.abs(missed - expected).max() < MARGIN
