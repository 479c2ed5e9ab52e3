"""A second robot, a Go2 with other lengths and masses, from its description to a policy's task."""

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

import keystride
from keystride.evaluation.episodes import exact_stance, run_episodes
from keystride.keyframes.goals import Goals
from keystride.keyframes.postures import named_postures
from keystride.keyframes.resolve import script_goals
from keystride.robot.catalogue import robot_text
from keystride.robot.description import Floats, Robot
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints, standing_height
from keystride.robot.model import load_model

LONGER, HEAVIER = 1.15, 1.2


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    """Thighs and calves are longer, everything weighs more."""
    folder = tmp_path_factory.mktemp("robot")
    spec = mujoco.MjSpec.from_file(str(GO2.model_path))
    for body in spec.bodies:
        body.mass *= HEAVIER
        body.inertia = HEAVIER * body.inertia
        if body.name.endswith("_calf"):
            body.pos = LONGER * body.pos
    for site in spec.sites:
        site.pos = LONGER * site.pos
    for geom in spec.geoms:
        if geom.name.endswith("_foot"):
            geom.pos = LONGER * geom.pos
    (folder / "other.xml").write_text(spec.to_xml())
    legs = tuple(
        replace(leg, thigh_length=LONGER * leg.thigh_length, calf_length=LONGER * leg.calf_length) for leg in GO2.legs
    )
    robot = replace(GO2, name="other", model_path=Path("other.xml"), legs=legs, stiffness=60.0, damping=1.5)
    (folder / "other.yaml").write_text(robot_text(robot))
    return keystride.load_robot(folder / "other.yaml")


class Hold:
    """Asks for the stance."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot

    def step(self, state: object, goals: Goals, now: Floats, previous_action: Floats) -> tuple[Floats, Floats]:
        return np.tile(self.robot.stance, (len(previous_action), 1)), previous_action

    def resting_action(self, joint_angles: Floats) -> Floats:
        return np.zeros_like(joint_angles)


def test_kinematics_agree_with_the_model(other: Robot) -> None:
    model = load_model(other)
    data = mujoco.MjData(model)
    data.qpos[:] = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, *other.stance]
    mujoco.mj_kinematics(model, data)
    sites = np.array([data.site(site).xpos for site in other.foot_sites])
    np.testing.assert_allclose(feet_from_joints(other, other.stance), sites, atol=1e-9)


def test_postures_fit_the_longer_legs(other: Robot) -> None:
    ours, theirs = named_postures(GO2)["sit"], named_postures(other)["sit"]
    assert theirs.height == pytest.approx(LONGER * ours.height)
    assert not np.allclose(theirs.joints, ours.joints)
    assert np.all((theirs.joints >= other.lower) & (theirs.joints <= other.upper))


def test_a_script_is_simulated_on_it(other: Robot) -> None:
    script = keystride.Script(keyframes=(keystride.Keyframe(time=1.0, position=(0.0, 0.0), posture="stand"),))
    rollout = run_episodes(Hold(other), other, exact_stance(other), script_goals(script, robot=other))
    height = standing_height(other, other.stance)
    assert rollout.falls == 0
    assert standing_height(GO2, GO2.stance) < rollout.trace.position[-1, 0, 2] < height  # the knees give a little
    assert height > 1.1 * standing_height(GO2, GO2.stance)
    np.testing.assert_allclose(rollout.goals.posture[0, 0], other.stance)


def test_the_task_runs_on_it(other: Robot) -> None:
    pytest.importorskip("gymnasium", reason="gymnasium comes with the extra gym")
    env = keystride.make_env(4, robot=other, seed=0)
    seen, _ = env.reset(seed=0)
    for _ in range(20):
        seen, reward, *_ = env.step(np.zeros((4, 12), np.float32))
        assert np.isfinite(np.asarray(seen)).all()
        assert np.isfinite(reward).all()


def test_a_policy_for_another_robot_is_refused(other: Robot) -> None:
    with pytest.raises(Exception, match="a policy for unitree_go2, not for other"):
        keystride.play("walk", "go2-position", robot=other)
