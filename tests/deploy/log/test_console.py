import os
import pty
import termios
import time

from keystride.deploy.log.console import LENGTH, Console


def test_lines_come_out_in_order():
    read, write = os.pipe()
    console = Console(write)
    for number in range(5):
        console.say(f"line {number}")
    console.close(30.0)
    assert os.read(read, 4096).decode().splitlines() == [f"line {number}" for number in range(5)]
    os.close(read)
    os.close(write)


def test_a_reader_that_has_gone_raises_nothing():
    read, write = os.pipe()
    os.close(read)
    console = Console(write)
    console.say("into the void")
    console.say("again")
    console.close(30.0)
    assert console.lost == 2
    os.close(write)


def test_a_terminal_that_is_closed_raises_nothing():
    outside, inside = pty.openpty()
    os.close(outside)
    console = Console(inside)
    console.say("into the void")
    console.close(30.0)
    assert console.lost == 1
    os.close(inside)


def test_a_frozen_terminal_does_not_block():
    """More than the queue holds: what does not fit is counted, and nobody waits."""
    outside, inside = pty.openpty()
    termios.tcflow(inside, termios.TCOOFF)
    console = Console(inside)
    for _ in range(2 * LENGTH):
        console.say("x" * 100)
    assert console.lost >= LENGTH - 2
    console.close(0.1)
    termios.tcflow(inside, termios.TCOON)
    until = time.monotonic() + 30.0
    while not console._messages.empty() and time.monotonic() < until:
        os.read(outside, 65536)
    os.close(outside)
    os.close(inside)
