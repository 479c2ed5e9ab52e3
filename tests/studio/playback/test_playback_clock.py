"""Control steps as the clock goes on."""

import pytest

from keystride.studio.playback.player import MAX_DELAY, PlaybackClock


@pytest.mark.parametrize("speed", [0.1, 0.25, 1.0, 4.0])
def test_fifty_steps_a_second_times_the_speed(speed: float):
    clock = PlaybackClock(speed)
    clock.start(10.0)
    steps = sum(clock.due(10.0 + i / 47) for i in range(1, 471))  # ten seconds, in frames of an odd length
    assert steps == pytest.approx(500 * speed, abs=1)


def test_a_long_stall_is_dropped_and_counted():
    clock = PlaybackClock()
    clock.start(0.0)
    clock.given += clock.due(2.0)
    assert clock.given == round(MAX_DELAY * 50)
    assert clock.ratio == pytest.approx(MAX_DELAY / 2.0)


def test_time_before_the_start_does_not_count():
    clock = PlaybackClock()
    clock.start(100.0)
    assert clock.due(100.02) == 1
