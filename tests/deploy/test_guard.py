"""The guard's protocol on pipes, and its process without a robot."""

import contextlib
import os
import select
import signal
import sys
import threading
import time

import pytest

from keystride.commands.main import main
from keystride.deploy.guard import (
    BRAKE_PERIOD,
    BRAKED_WITHIN,
    BRAKES,
    DISMISSED,
    GUARD_SENTENCE,
    HEARTBEAT,
    HEARTBEAT_TIMEOUT,
    Guard,
    Silence,
    keep_braking,
    local_guard,
    silent,
    write_line,
)
from keystride.deploy.unitree.codec import BRAKE
from keystride.robot.go2 import GO2

ECHO = "import sys; from keystride.deploy.guard import STANDING_BY, silent; import os; os.write(1, STANDING_BY); silent(0, 1, {})"


@pytest.fixture
def pipes():
    ends = [*os.pipe(), *os.pipe()]
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def answer(pipes, act) -> tuple[Silence | None, bytes]:
    """What the guard makes of it, and what it answers."""
    source, to, answers, out = pipes
    result: list[Silence | None] = []
    thread = threading.Thread(target=lambda: result.append(silent(source, out, 0.05)))
    thread.start()
    act(to)
    thread.join(30.0)
    return result[0], os.read(answers, 4096) if select.select([answers], [], [], 0.0)[0] else b""


def test_silence_after_a_heartbeat_is_noticed(pipes):
    begun = time.monotonic()
    silence, said = answer(pipes, lambda to: os.write(to, HEARTBEAT))
    assert silence is not None
    assert silence.heard_at + 0.05 + silence.woken_late <= time.monotonic()
    assert silence.heard_at >= begun
    assert said.endswith(BRAKES)


def test_the_time_until_the_brake_is_told_apart_from_the_delay_of_the_machine():
    match = GUARD_SENTENCE.search(Silence(heard_at=10.0, woken_late=0.004).sentence(10.0495))
    assert match is not None
    assert match.groups() == ("49.5", "4.0")


def test_the_guard_brakes_before_its_time_is_over():
    """The timeout, and the time to make and send a command."""
    assert HEARTBEAT_TIMEOUT + 2 * BRAKE_PERIOD <= BRAKED_WITHIN


def test_a_guard_says_that_it_braked_after_it_has_braked():
    read, write = os.pipe()
    done: list[str] = []
    os.close(write)

    def send() -> None:
        done.append("sent")
        if len(done) < 3:
            raise ConnectionError("gone")

    keep_braking(send, 0.1, read, lambda: done.append("said"))
    os.close(read)
    assert done[:4] == ["sent", "sent", "sent", "said"]
    assert done.count("said") == 1


def test_what_a_guard_says_goes_into_a_closed_pipe_without_harm():
    read, write = os.pipe()
    write_line(write, "braked")
    assert select.select([read], [], [], 30.0)[0]
    assert os.read(read, 100) == b"braked\n"
    os.close(read)
    write_line(write, "into the void")
    os.close(write)


def test_dismissed_it_does_nothing(pipes):
    silence, said = answer(pipes, lambda to: os.write(to, HEARTBEAT + DISMISSED))
    assert silence is None
    assert BRAKES not in said


def test_a_pipe_that_closes_while_driving_is_silence(pipes):
    assert answer(pipes, lambda to: (os.write(to, HEARTBEAT), os.close(to)))[0] is not None


def test_a_pipe_that_closes_before_anything_was_driven_is_not(pipes):
    assert answer(pipes, os.close)[0] is None


def started_guard(silence: float = 0.5) -> Guard:
    guard = Guard([sys.executable, "-c", ECHO.format(silence)])
    assert guard.wait(60.0) == ""
    return guard


def beat_until(guard: Guard, trouble: str) -> bool:
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        if guard.beat(time.monotonic()) == trouble:
            return True
        time.sleep(0.002)
    return False


def test_a_guard_that_dies_is_noticed():
    guard = started_guard()
    assert guard.beat(time.monotonic()) == ""
    os.kill(guard.pid, 9)
    assert beat_until(guard, "guard process lost")
    guard.dismiss(safe=True)


def test_a_guard_that_hangs_is_noticed():
    guard = started_guard(1e6)
    os.kill(guard.pid, 19)  # SIGSTOP
    assert beat_until(guard, "guard does not answer")
    os.kill(guard.pid, 9)
    guard.dismiss(safe=True)


def test_a_guard_that_has_braked_says_so():
    guard = started_guard(0.01)
    for _ in range(4):
        guard.beat(time.monotonic())
    time.sleep(0.2)
    assert beat_until(guard, "guard braked the robot")
    guard.dismiss(safe=True)


def test_a_guard_that_does_not_start():
    assert Guard([sys.executable, "-c", "pass"]).wait(60.0) == "the guard did not start"


def test_brakes_go_on_after_one_that_fails():
    tried = []

    def send() -> None:
        tried.append(len(tried))
        if len(tried) < 5:
            raise ConnectionError("gone")

    read, write = os.pipe()
    os.close(write)
    keep_braking(send, 0.2, read)
    os.close(read)
    assert len(tried) > 10


def test_brakes_go_on_while_the_deployment_lives_and_end_when_it_says_so():
    read, write = os.pipe()
    tried: list[float] = []
    thread = threading.Thread(target=keep_braking, args=(lambda: tried.append(time.monotonic()), 0.01, read))
    thread.start()
    os.write(write, HEARTBEAT)
    time.sleep(0.3)
    assert thread.is_alive()
    os.write(write, DISMISSED)
    thread.join(30.0)
    assert not thread.is_alive()
    for end in (read, write):
        os.close(end)


@pytest.mark.parametrize("silence", ["0", "nan", "10", "inf"])
def test_a_guard_that_would_never_brake_or_always_does_not_start(silence, capsys):
    assert main(["deploy", "guard", "--interface", "lo", "--domain", "231", "--silence", silence]) == 2
    assert "outside the range 0.02 to 0.2 s" in capsys.readouterr().err


def test_a_guard_whose_connection_hangs_up_stays_and_brakes(capfd):
    """The guard's own process on the network, with a simulated robot in this one."""
    pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")
    from keystride.deploy.clock import Ticker
    from keystride.deploy.selftest.processes import reserved_domain
    from keystride.deploy.sim.server import SimulatedConfig, SimulatedRobot, simulated_world
    from keystride.deploy.unitree.link import join

    config = SimulatedConfig(sport=False)
    with reserved_domain() as domain:
        robot = SimulatedRobot(simulated_world(GO2, config), join("lo", domain), config)
        life = Ticker("robot", 0.002, robot.step, lambda error: None)
        life.start()
        guard = Guard(local_guard("lo", domain))
        assert guard.wait(60.0) == ""
        for _ in range(20):
            guard.beat(time.monotonic())
            time.sleep(0.002)
        os.kill(guard.pid, signal.SIGHUP)
        until = time.monotonic() + 60.0
        while robot.world.command is None and time.monotonic() < until:
            time.sleep(0.01)
        command = robot.world.command
        assert command is not None
        assert not command.stiffness.any()
        assert (command.damping == BRAKE).all()
        guard.dismiss(safe=True)
        life.stop()
        robot.close()
    assert GUARD_SENTENCE.search(capfd.readouterr().err)
