"""Laws of the batched simulator."""

from dataclasses import fields, replace

import numpy as np
import pytest

from keystride.physics.simulator import (
    ROBOT_RANDOMIZATION,
    CpuSimulator,
    Randomization,
    State,
    standing_start,
    training_model,
)
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import standing_height
from keystride.robot.model import STIFFNESS_COLUMN

HEIGHT = float(standing_height(GO2, GO2.stance))
CALM = Randomization(
    friction=(0.8, 0.8), stiffness=(1, 1), damping=(1, 1), lag_steps=(0, 0), push_interval=(10**6, 10**6 + 1)
)


def simulator(
    count: int = 4, *, randomization: Randomization | None = None, seed: int = 0, threads: int = 1
) -> CpuSimulator:
    made = CpuSimulator(GO2, count, randomization=randomization, seed=seed, threads=threads)
    made.reset(np.arange(count), standing_start(count, HEIGHT, GO2.stance))
    return made


def wiggle(made: CpuSimulator, steps: int, seed: int = 1) -> State:
    random = np.random.default_rng(seed)
    state = made.state()
    for _ in range(steps):
        state = made.advance(GO2.stance + 0.2 * random.normal(size=(made.environments, 12)))
    return state


def same(a: State, b: State) -> bool:
    return all(np.array_equal(getattr(a, field.name), getattr(b, field.name)) for field in fields(State))


def lagging(steps: int) -> Randomization:
    return Randomization((0.8, 0.8), (1, 1), (1, 1), (steps, steps), push_interval=(10**6, 10**6 + 1))


def test_threads_do_not_change_a_single_bit():
    one = simulator(32, randomization=Randomization(push_interval=(5, 10)), threads=1)
    two = simulator(32, randomization=Randomization(push_interval=(5, 10)), threads=2)
    assert same(wiggle(one, 40), wiggle(two, 40))


def test_another_seed_is_another_world():
    one, two = (simulator(8, randomization=Randomization(), seed=seed) for seed in (0, 1))
    assert not same(wiggle(one, 10), wiggle(two, 10))


def test_without_randomization_all_environments_are_equal():
    made = simulator(5)
    state = made.advance(np.tile(GO2.stance + 0.1, (5, 1)))
    assert np.array_equal(state.position, np.tile(state.position[0], (5, 1)))


def test_randomization_at_its_nominal_values_is_no_randomization():
    assert np.allclose(wiggle(simulator(), 30).position, wiggle(simulator(randomization=CALM), 30).position, atol=1e-12)


def test_variations_lie_in_the_papers_ranges():
    varied = simulator(400, randomization=Randomization()).snapshot()
    friction, gain, delay = (
        np.asarray(varied[f"varied.{n}"]) for n in ("geom_friction", "actuator_gainprm", "actuator_delay")
    )
    assert 0.25 <= friction[..., 0].min() < 0.3
    assert 1.7 < friction[..., 0].max() <= 1.75
    assert 0.9 * GO2.stiffness <= gain[..., STIFFNESS_COLUMN].min()
    assert gain[..., STIFFNESS_COLUMN].max() <= 1.1 * GO2.stiffness
    assert set(np.ceil(np.unique(delay) / 0.005).astype(int)) == set(range(7))


def test_a_target_takes_effect_after_the_lag():
    """A lag of four physics steps is one control step: what is asked now happens in the next one."""
    lagged, prompt = simulator(1, randomization=lagging(4)), simulator(1, randomization=lagging(0))
    asked, hold = GO2.stance[None] + 0.2, GO2.stance[None]
    held = prompt.advance(hold)
    assert np.allclose(lagged.advance(asked).joint_angles, held.joint_angles, atol=1e-12)
    assert np.allclose(lagged.advance(asked).joint_angles, prompt.advance(asked).joint_angles, atol=1e-12)


def test_a_reset_fills_the_motors_history():
    """Holding the start's joint angles is the same with and without lag; zeros in the history would kick."""
    lagged, prompt = simulator(1, randomization=lagging(6)), simulator(1, randomization=lagging(0))
    for _ in range(3):
        a, b = lagged.advance(GO2.stance[None]), prompt.advance(GO2.stance[None])
    assert np.allclose(a.joint_angles, b.joint_angles, atol=1e-12)


def test_torques_saturate_at_the_motors_limits():
    state = simulator(1).advance(GO2.stance[None] + np.tile([1.0, -2.0, 3.0], 4))
    assert (np.abs(state.torque) <= GO2.torque_limit + 1e-9).all()
    assert np.isclose(np.abs(state.torque), GO2.torque_limit).any()


def test_a_reset_touches_only_its_environments():
    one, two = simulator(6), simulator(6)
    wiggle(one, 20)
    wiggle(two, 20)
    two.reset(np.array([1, 4]), standing_start(2, 0.5, GO2.stance))
    others = [0, 2, 3, 5]
    assert np.array_equal(one.state().position[others], two.state().position[others])
    assert np.allclose(two.state().position[[1, 4]], [0, 0, 0.5])
    assert np.array_equal(wiggle(one, 20, seed=2).position[others], wiggle(two, 20, seed=2).position[others])


def test_a_broken_state_is_seen_counted_and_does_not_spread():
    whole, broken = simulator(3), simulator(3)
    broken.push(np.array([1]), np.full((1, 3), np.nan), np.zeros((1, 3)))
    a, b = wiggle(whole, 5), wiggle(broken, 5)
    assert b.diverged.tolist() == [False, True, False]
    assert broken.divergences == 5
    assert np.array_equal(a.position[[0, 2]], b.position[[0, 2]])
    broken.reset(np.array([1]), standing_start(1, HEIGHT, GO2.stance))
    assert not wiggle(broken, 5).diverged.any()


def test_restore_continues_bit_for_bit():
    first = simulator(8, randomization=Randomization(push_interval=(3, 6)))
    wiggle(first, 10)
    second = simulator(8, randomization=Randomization(push_interval=(3, 6)), seed=99)
    second.restore(first.snapshot())
    assert same(wiggle(first, 20), wiggle(second, 20))


def test_a_push_adds_to_the_velocity():
    made = simulator(2)
    before = made.state()
    made.push(np.array([1]), np.array([[0.5, 0.0, 0.0]]), np.array([[0.0, 0.0, 0.3]]))
    after = made.state()
    assert np.allclose(after.linear_velocity - before.linear_velocity, [[0, 0, 0], [0.5, 0, 0]])
    assert np.allclose(after.angular_velocity - before.angular_velocity, [[0, 0, 0], [0, 0, 0.3]])


def test_velocity_in_the_base_frame_and_feet_in_the_world():
    """Facing left (yaw 90 degrees) and moving along world y is moving forwards."""
    start = standing_start(1, HEIGHT, GO2.stance)
    turned = np.array([[np.sqrt(0.5), 0, 0, np.sqrt(0.5)]])
    made = CpuSimulator(GO2, 1, threads=1)
    made.reset(np.arange(1), type(start)(start.position, turned, np.array([[0.0, 1.0, 0.0]]), *_rest(start)))
    state = made.state()
    assert np.allclose(state.base_velocity, [[1.0, 0.0, 0.0]])
    assert state.feet_in_world[0, :, 2] == pytest.approx(GO2.foot_radius, abs=1e-6)
    assert state.feet_in_world[0, 0, 0] < 0  # the front left foot is now on the world's -x side


def test_the_feet_of_a_standing_robot_carry_its_weight_and_those_of_a_flying_one_nothing():
    standing = simulator(1)
    for _ in range(100):
        state = standing.advance(GO2.stance[None])
    assert state.contact.sum() == pytest.approx(9.81 * standing._model.body_subtreemass[0], rel=0.02)
    assert np.all(state.contact > 20.0)
    standing.reset(np.arange(1), standing_start(1, HEIGHT + 0.5, GO2.stance))
    assert not np.any(standing.advance(GO2.stance[None]).contact)


def _rest(start):
    return start.angular_velocity, start.joint_angles, start.joint_velocities


def test_friction_is_set_on_ground_and_feet_alone():
    physics = CpuSimulator(GO2, 2)
    own = training_model(GO2).geom_friction[:, 0]
    physics.set_friction(0.3)
    now = physics._batch.expand("geom_friction")[..., 0]
    assert (own[0], now[0, 0]) == (0.8, 0.3)
    np.testing.assert_array_equal(now == 0.3, np.tile(own == own[0], (2, 1)))
    np.testing.assert_array_equal(now[now != 0.3], np.tile(own[own != own[0]], 2))
    assert (own == own[0]).sum() == 1 + len(GO2.legs)


def test_pushes_come_at_their_interval_whatever_resets_happen():
    """An episode is shorter than the wait: were it drawn again at every reset, hardly any robot would be pushed."""
    ranges = replace(CALM, push_speed=(1.0, 1.0), push_interval=(150, 400))
    robots = simulator(64, randomization=ranges)
    start = standing_start(64, float(standing_height(GO2, GO2.stance)), GO2.stance)
    pushed = np.zeros(64, dtype=bool)
    for step in range(400):
        if step % 100 == 0:
            robots.reset(np.arange(64), start)
        state = robots.advance(np.tile(GO2.stance, (64, 1)))
        pushed |= np.linalg.norm(state.linear_velocity[:, :2], axis=1) > 0.4
    assert pushed.all()


def test_payload_place_and_strength_lie_in_their_ranges():
    robots = simulator(400, randomization=ROBOT_RANDOMIZATION)
    varied = robots.snapshot()
    base = robots._model.body(GO2.base_body).id
    payload = np.asarray(varied["varied.body_mass"])[:, base] - robots._model.body_mass[base]
    place = np.asarray(varied["varied.body_ipos"])[:, base] - robots._model.body_ipos[base]
    strength = np.asarray(varied["varied.actuator_forcerange"])[..., 1] / GO2.torque_limit
    assert -1.0 <= payload.min() < -0.9
    assert 2.9 < payload.max() <= 3.0
    assert 0.045 < np.abs(place).max() <= 0.05
    assert 0.8 <= strength.min() < 0.82
    assert 1.08 < strength.max() <= 1.1


def test_a_heavier_robot_presses_harder_on_the_ground():
    calm = replace(CALM, payload=(3.0, 3.0))
    start = standing_start(4, float(standing_height(GO2, GO2.stance)), GO2.stance)
    forces = []
    for randomization in (CALM, calm):
        robots = simulator(randomization=randomization)
        robots.reset(np.arange(4), start)
        for _ in range(150):
            state = robots.advance(np.tile(GO2.stance, (4, 1)))
        forces.append(state.contact.sum(axis=1).mean())
    assert forces[1] - forces[0] == pytest.approx(3.0 * 9.81, rel=0.02)


def test_the_share_of_robots_that_does_not_vary_is_nominal():
    varied = simulator(8, randomization=replace(ROBOT_RANDOMIZATION, share=0.5, push_interval=(5, 10)))
    nominal = simulator(8)
    one, other = wiggle(varied, 30), wiggle(nominal, 30)
    assert np.array_equal(one.position[4:], other.position[4:])
    assert (one.position[:4] != other.position[:4]).all()
