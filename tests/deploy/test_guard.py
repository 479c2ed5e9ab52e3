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
from keystride.deploy.guard import BRAKES, DISMISSED, HEARTBEAT, Guard, keep_braking, local_guard, silent
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


def answer(pipes, act) -> tuple[bool, bytes]:
    """What the guard makes of it, and what it answers."""
    source, to, answers, out = pipes
    result: list[bool] = []
    thread = threading.Thread(target=lambda: result.append(silent(source, out, 0.05)))
    thread.start()
    act(to)
    thread.join(30.0)
    return result[0], os.read(answers, 4096) if select.select([answers], [], [], 0.0)[0] else b""


def test_silence_after_a_heartbeat_is_noticed(pipes):
    braked, said = answer(pipes, lambda to: os.write(to, HEARTBEAT))
    assert braked
    assert said.endswith(BRAKES)


def test_dismissed_it_does_nothing(pipes):
    braked, said = answer(pipes, lambda to: os.write(to, HEARTBEAT + DISMISSED))
    assert not braked
    assert BRAKES not in said


def test_a_pipe_that_closes_while_driving_is_silence(pipes):
    assert answer(pipes, lambda to: (os.write(to, HEARTBEAT), os.close(to)))[0]


def test_a_pipe_that_closes_before_anything_was_driven_is_not(pipes):
    assert not answer(pipes, os.close)[0]


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


def test_a_guard_whose_connection_hangs_up_stays_and_brakes():
    """The guard's own process on the network, with a simulated robot in this one."""
    pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")
    from keystride.deploy.clock import Ticker
    from keystride.deploy.sim.server import SimulatedConfig, SimulatedRobot, simulated_world
    from keystride.deploy.unitree.link import join

    domain = 20 + (os.getpid() + 13) % 200
    config = SimulatedConfig(sport=False)
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
