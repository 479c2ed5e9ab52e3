"""What counts as the machine's fault: time in which a process was ready to run and was kept waiting."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")
if not os.path.exists("/proc/self/schedstat"):
    pytest.skip("this system does not count waiting", allow_module_level=True)

from keystride.deploy.selftest.processes import (
    DOMAINS,
    free_port,
    idle_processors,
    reserved_domain,
    reserved_slot,
    waited,
)
from keystride.deploy.unitree.link import join

BUSY = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(flush=True)\nwhile True: pass"


@pytest.fixture
def busy() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that share one processor."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def total(process: subprocess.Popen[bytes]) -> float:
    return sum(waited(process.pid).values())


def test_processes_that_share_a_processor_are_kept_waiting(busy):
    before, until = total(busy[0]), time.monotonic() + 60.0
    while total(busy[0]) - before < 0.03 and time.monotonic() < until:
        time.sleep(0.01)
    assert total(busy[0]) - before >= 0.03


def test_a_process_that_is_stopped_is_not_kept_waiting(busy):
    os.kill(busy[0].pid, signal.SIGSTOP)
    os.waitid(os.P_PID, busy[0].pid, os.WSTOPPED)
    before = total(busy[0])
    time.sleep(0.2)
    assert total(busy[0]) == before


def test_children_count_too(busy):
    assert busy[1].pid in waited(os.getpid())


def test_a_busy_processor_is_not_idle(busy):
    assert 0.0 <= idle_processors(0.5) < (os.cpu_count() or 1) - 0.5


def test_a_process_that_has_ended_has_no_threads(busy):
    busy[0].kill()
    busy[0].wait()
    assert waited(busy[0].pid) == {}


def test_a_free_port_is_none_that_the_system_or_dds_hands_out():
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(50):
        port = free_port()
        assert port < min(first_outgoing, 32_768)
        assert (port - 7400) % 250 >= 150  # DDS, 9.6.1.1: 7400 + 250 x domain, and 2 more for each participant
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", port))


def test_a_domain_is_reserved_for_one_caller():
    with reserved_domain() as first, reserved_domain() as second:
        assert first != second
        with pytest.raises(RuntimeError, match="no DDS domain is free"), reserved_domain([first, second]):
            pass
    with reserved_domain([first]) as again:
        assert again == first


def test_no_more_slots_are_taken_at_once_than_there_are():
    """Also by several self-tests: each would fill the processors with real-time processes."""
    taken, most, done = 0, 0, 0
    lock = threading.Lock()

    def take_slot() -> None:
        nonlocal taken, most, done
        with reserved_slot(2):
            with lock:
                taken += 1
                most = max(most, taken)
            time.sleep(0.15)
            with lock:
                taken, done = taken - 1, done + 1

    threads = [threading.Thread(target=take_slot) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most <= 2, done) == (True, 5)


def test_a_domain_in_which_a_program_takes_part_is_not_free():
    with reserved_domain() as domain:
        participant = join("lo", domain)
    with pytest.raises(RuntimeError, match="no DDS domain is free"), reserved_domain([domain]):
        pass
    del participant


def test_domains_for_simulated_robots_have_ports_and_none_is_a_robots_own():
    assert 0 not in DOMAINS
    assert 7400 + 250 * (max(DOMAINS) + 1) <= 65_536
