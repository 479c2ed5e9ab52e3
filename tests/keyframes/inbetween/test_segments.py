"""Path segments by hand: where the robot is, which way it faces, and how fast it goes."""

from dataclasses import replace

import numpy as np
import pytest

from keystride.keyframes.inbetween.segments import Segments, minimum_jerk, sample

ZERO = np.zeros(1)
STRAIGHT = Segments(  # 2 m along x in 4 s: 1 s up to speed, 2 s at 2/3 m/s, 1 s down
    begin=np.zeros((1, 2)),
    end=np.array([[2.0, 0.0]]),
    depart=np.array([[2.0, 0.0]]),
    arrive=np.array([[2.0, 0.0]]),
    speed_in=ZERO,
    speed_out=ZERO,
    yaw=ZERO,
    turn=ZERO,
    turn_in=ZERO,
    turn_out=ZERO,
    along=np.ones(1, dtype=bool),
    wait=np.array([1.0]),
    first=ZERO,
    walk=np.array([4.0]),
    last=ZERO,
    ramp=np.array([1.0]),
)


def at(segments: Segments, time: float) -> tuple[list[float], float, bool, bool]:
    position, yaw, set_off, walks = sample(segments, np.array([time]))
    return position[0].tolist(), float(yaw[0]), bool(set_off[0]), bool(walks[0])


def along(segments: Segments, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and yaw at many times."""
    position, yaw, _, _ = sample(segments[(np.zeros(len(times), dtype=np.intp),)], times)
    return position[:, 0], yaw


def test_minimum_jerk_rests_at_both_ends_and_is_symmetric() -> None:
    share = np.linspace(0.0, 1.0, 11)
    curve = minimum_jerk(share)
    np.testing.assert_allclose(curve + curve[::-1], 1.0)
    assert minimum_jerk(np.array([-1.0, 0.0, 0.5, 1.0, 2.0])).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    ends = minimum_jerk(np.array([1e-4, 1 - 1e-4]))
    np.testing.assert_allclose(ends, [0.0, 1.0], atol=1e-10)


def test_the_cruising_speed_makes_up_for_both_ramps() -> None:
    assert STRAIGHT.cruise[0] == pytest.approx(2.0 / 3.0)  # 2 m in 4 s with two ramps of 1 s: 2 / (4 - 1)
    assert STRAIGHT.top_speed[0] == STRAIGHT.cruise[0]
    moving = replace(STRAIGHT, speed_in=np.array([0.5]), speed_out=np.array([0.5]))
    assert moving.cruise[0] == pytest.approx(0.5)  # as fast throughout


def test_it_waits_walks_and_arrives() -> None:
    assert at(STRAIGHT, 0.5) == ([0.0, 0.0], 0.0, False, False)
    position, yaw, set_off, walks = at(STRAIGHT, 3.0)  # half-way in time is half-way in space
    assert position == pytest.approx([1.0, 0.0])
    assert (yaw, set_off, walks) == (0.0, True, True)
    position, _, _, walks = at(STRAIGHT, 5.0)
    assert position == pytest.approx([2.0, 0.0])
    assert not walks


def test_speed_is_continuous_and_integrates_to_the_length() -> None:
    times = np.linspace(1.0, 5.0, 401)
    x, _ = along(STRAIGHT, times)
    speed = np.diff(x) / np.diff(times)
    assert speed.max() == pytest.approx(STRAIGHT.cruise[0], rel=1e-3)
    assert np.abs(np.diff(speed)).max() < 0.02
    assert (speed >= 0.0).all()


def test_a_turn_in_place_is_centred_and_as_fast_as_stated() -> None:
    turn = replace(STRAIGHT, end=np.zeros((1, 2)), turn=np.array([1.0]), along=np.zeros(1, dtype=bool))
    assert at(turn, 3.0)[1] == pytest.approx(0.5)
    assert at(turn, 9.0)[1] == pytest.approx(1.0)
    assert turn.top_turn_rate[0] == pytest.approx(1.875 / 4.0)
    times = np.linspace(1.0, 5.0, 4001)
    _, yaw = along(turn, times)
    assert (np.diff(yaw) / np.diff(times)).max() == pytest.approx(turn.top_turn_rate[0], rel=1e-3)


def test_rows_are_chosen_together() -> None:
    pairs = zip(vars(STRAIGHT).values(), vars(replace(STRAIGHT, end=np.array([[3.0, 0.0]]))).values(), strict=True)
    two = Segments(*(np.concatenate(pair) for pair in pairs))
    assert two[(np.array([1]),)].length.tolist() == [3.0]
