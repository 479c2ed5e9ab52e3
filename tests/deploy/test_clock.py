import os
import threading
import time

import pytest

from keystride.deploy.clock import Lateness, Latest, Ticker, real_time


def test_the_newest_value_has_an_age():
    latest: Latest[str] = Latest()
    assert latest.value is None
    assert latest.age() == float("inf")
    latest.put("a", at=10.0)
    latest.put("b", at=12.0)
    assert latest.value == "b"
    assert latest.age(now=12.5) == 0.5
    assert latest.count == 2


def test_waiting_ends_with_the_first_value():
    latest: Latest[int] = Latest()
    assert not latest.wait(0.01)
    threading.Timer(0.05, latest.put, [1]).start()
    assert latest.wait(10.0)


def test_lateness_counts_what_was_left_out():
    late = Lateness()
    late.note(0.0005, 0.002)
    late.note(0.005, 0.002)  # two and a half periods late
    assert (late.ticks, late.worst, late.skipped) == (2, 0.005, 2)


def test_a_ticker_ticks_until_stopped():
    moments: list[float] = []
    ticker = Ticker("t", 0.002, moments.append, lambda error: None)
    ticker.start()
    until = time.monotonic() + 120.0
    while len(moments) <= 10 and time.monotonic() < until:
        time.sleep(0.002)
    ticker.stop()
    count = len(moments)
    assert count > 10
    time.sleep(0.05)
    assert len(moments) == count
    assert moments == sorted(moments)


def test_a_ticker_that_fails_says_so_once_and_ends():
    said: list[BaseException] = []

    def tick(now: float) -> None:
        raise ArithmeticError("broken")

    ticker = Ticker("t", 0.001, tick, said.append)
    ticker.start()
    ticker.join(5.0)
    assert [str(error) for error in said] == ["broken"]


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="this system has no such scheduler")
def test_real_time_ends_with_its_block():
    before = os.sched_getscheduler(0)
    with real_time() as allowed:
        assert (os.sched_getscheduler(0) == os.SCHED_RR) == allowed
    assert os.sched_getscheduler(0) == before


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="this system has no such scheduler")
def test_real_time_of_the_whole_process_includes_threads_that_run_already():
    over, ids = threading.Event(), []
    thread = threading.Thread(target=lambda: (ids.append(threading.get_native_id()), over.wait()))
    thread.start()
    while not ids:
        time.sleep(0.001)
    before = os.sched_getscheduler(ids[0])
    with real_time(11, whole_process=True) as allowed:
        assert (os.sched_getscheduler(ids[0]) == os.SCHED_RR) == allowed
        assert (os.sched_getparam(ids[0]).sched_priority == 11) == allowed
    assert os.sched_getscheduler(ids[0]) == before
    over.set()
    thread.join()
