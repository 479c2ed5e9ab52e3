"""Laws of the rotations, for NumPy arrays and torch tensors alike."""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keystride import geometry as g

Array = Any
Make = Callable[[Any], Array]  # from a NumPy array to the library under test


def _torch(values: Any) -> Array:
    torch = pytest.importorskip("torch", reason="the train extra is not installed")
    return torch.as_tensor(np.asarray(values))


makers = pytest.mark.parametrize("make", [np.asarray, _torch], ids=["numpy", "torch"])


def numbers(size: int, bound: float) -> st.SearchStrategy[np.ndarray]:
    return st.lists(st.floats(-bound, bound), min_size=size, max_size=size).map(np.array)


vectors = numbers(3, 10.0)
quaternions = numbers(4, 1.0).filter(lambda q: np.linalg.norm(q) > 0.1).map(lambda q: q / np.linalg.norm(q))
angles = st.floats(-50, 50)


def close(a: Array, b: Array, tolerance: float = 1e-9) -> bool:
    return np.allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance)


def same_rotation(a: Array, b: Array, tolerance: float = 1e-9) -> bool:
    return close(a, b, tolerance) or close(-a, b, tolerance)


@makers
@given(angle=angles)
def test_wrap_keeps_the_angle_and_lands_in_its_range(make: Make, angle: float):
    wrapped = float(g.wrap(make([angle]))[0])
    assert -pi < wrapped <= pi
    assert close([np.cos(wrapped), np.sin(wrapped)], [np.cos(angle), np.sin(angle)])


@makers
def test_wrap_of_the_ends(make: Make):
    assert close(g.wrap(make([pi, -pi, 3 * pi, 0.0, -0.5])), [pi, pi, pi, 0.0, -0.5])


@makers
@given(q=quaternions, v=vectors)
def test_rotating_there_and_back(make: Make, q: np.ndarray, v: np.ndarray):
    q, v = make(q), make(v)
    assert close(g.rotate_inverse(q, g.rotate(q, v)), v)


@makers
@given(q=quaternions, v=vectors)
def test_rotating_keeps_lengths(make: Make, q: np.ndarray, v: np.ndarray):
    assert close(np.linalg.norm(np.asarray(g.rotate(make(q), make(v)))), np.linalg.norm(v))


@makers
@given(a=quaternions, b=quaternions, v=vectors)
def test_product_rotates_by_the_right_one_first(make: Make, a: np.ndarray, b: np.ndarray, v: np.ndarray):
    a, b, v = make(a), make(b), make(v)
    assert close(g.rotate(g.multiply(a, b), v), g.rotate(a, g.rotate(b, v)))


@makers
def test_a_quarter_turn_left_brings_forward_to_left(make: Make):
    quarter = g.from_yaw(make([pi / 2]))[0]
    assert close(g.rotate(quarter, make([1.0, 0.0, 0.0])), [0.0, 1.0, 0.0])
    assert close(g.rotate_yaw(make([pi / 2])[0], make([1.0, 0.0, 5.0])), [0.0, 1.0, 5.0])


@makers
@given(q=quaternions)
def test_conjugate_is_the_inverse(make: Make, q: np.ndarray):
    assert close(g.multiply(make(q), g.conjugate(make(q))), [1, 0, 0, 0])


@makers
@given(roll=st.floats(-3.1, 3.1), pitch=st.floats(-1.5, 1.5), yaw=st.floats(-3.1, 3.1))
def test_roll_pitch_yaw_round_trip(make: Make, roll: float, pitch: float, yaw: float):
    given_angles = make(np.array([roll, pitch, yaw]))
    assert close(g.roll_pitch_yaw(g.from_roll_pitch_yaw(given_angles)), given_angles, 1e-6)


@makers
@given(q=quaternions)
def test_angles_give_the_rotation_back(make: Make, q: np.ndarray):
    """Everywhere but next to a pitch of 90 degrees, where roll and yaw are not defined apart."""
    angles = np.asarray(g.roll_pitch_yaw(make(q)))
    assume(abs(angles[1]) < pi / 2 - 1e-3)
    assert same_rotation(g.from_roll_pitch_yaw(make(angles)), make(q), 1e-6)


@makers
@given(roll=st.floats(-3, 3), pitch=st.floats(-1.5, 1.5), yaw=st.floats(-3, 3))
def test_pitch_is_the_nose_down_and_roll_the_right_side_down(make: Make, roll: float, pitch: float, yaw: float):
    """The base's axes in the world, by their definition."""
    q = g.from_roll_pitch_yaw(make(np.array([roll, pitch, yaw])))
    nose, left = g.rotate(q, make([1.0, 0.0, 0.0])), g.rotate(q, make([0.0, 1.0, 0.0]))
    assert close(nose[..., 2], -np.sin(pitch))
    assert close(left[..., 2], np.cos(pitch) * np.sin(roll))
    assert close(g.yaw_of(q), yaw, 1e-6)


@makers
@given(q=quaternions)
def test_projected_gravity_is_the_downward_axis_seen_from_the_base(make: Make, q: np.ndarray):
    q = make(q)
    assert close(g.projected_gravity(q), g.rotate_inverse(q, make([0.0, 0.0, -1.0])))


@makers
@given(q=quaternions)
def test_rotation_vector_round_trip(make: Make, q: np.ndarray):
    v = g.rotation_vector(make(q))
    assert np.linalg.norm(np.asarray(v)) <= pi + 1e-9
    assert same_rotation(g.from_rotation_vector(v), make(q), 1e-6)


@makers
def test_no_rotation_is_no_vector_and_back_without_a_division_by_zero(make: Make):
    still = make([1.0, 0.0, 0.0, 0.0])
    assert close(g.rotation_vector(still), [0, 0, 0])
    assert close(g.from_rotation_vector(make([0.0, 0.0, 0.0])), still)


@makers
@given(a=quaternions, b=quaternions)
def test_slerp_starts_at_a_and_ends_at_b(make: Make, a: np.ndarray, b: np.ndarray):
    ends = g.slerp(make(np.stack([a, a])), make(np.stack([b, b])), make([0.0, 1.0]))
    assert same_rotation(ends[0], make(a), 1e-6)
    assert same_rotation(ends[1], make(b), 1e-6)


@makers
def test_half_of_a_turn_is_half_its_angle(make: Make):
    yaw = g.from_yaw(make([0.2, 1.0]))
    assert close(g.yaw_of(g.slerp(yaw[0], yaw[1], make(0.5))), 0.6)


@makers
@given(q=quaternions, v=vectors)
def test_mirroring_a_rotation_and_a_vector_mirrors_the_result(make: Make, q: np.ndarray, v: np.ndarray):
    mirrored = g.rotate(make(q * g.MIRROR_QUATERNION), make(v * g.MIRROR_VECTOR))
    assert close(mirrored, np.asarray(g.rotate(make(q), make(v))) * g.MIRROR_VECTOR)


@makers
@given(a=vectors, b=vectors)
def test_cross_is_perpendicular_to_both(make: Make, a: np.ndarray, b: np.ndarray):
    product = np.asarray(g.cross(make(a), make(b)))
    assert close([product @ a, product @ b], [0, 0], 1e-6)
    assert close(g.cross(make([1.0, 0.0, 0.0]), make([0.0, 1.0, 0.0])), [0, 0, 1])


def test_both_libraries_agree_on_batches():
    random = np.random.default_rng(0)
    q = g.normalize(random.normal(size=(5, 6, 4)))
    v = random.normal(size=(5, 6, 3))
    assert close(g.rotate(_torch(q), _torch(v)), g.rotate(q, v))
    assert close(g.roll_pitch_yaw(_torch(q)), g.roll_pitch_yaw(q))
    assert close(g.rotation_vector(_torch(q)), g.rotation_vector(q))
