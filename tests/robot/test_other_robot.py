"""A second robot, a Go2 with other lengths and masses: from its description through training to a policy that plays."""

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
from keystride.learner.config import CPU, DiscriminatorConfig
from keystride.robot.catalogue import robot_text
from keystride.robot.description import Floats, Robot
from keystride.robot.go2 import GO2
from keystride.robot.kinematics import feet_from_joints, standing_height
from keystride.robot.model import load_model
from keystride.training.config import EvaluationConfig, config_of_run

LONGER, HEAVIER = 1.15, 1.2
SCRIPT = keystride.Script(keyframes=(keystride.Keyframe(time=1.0, position=(0.0, 0.0), posture="stand"),))


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    return folder / "other.yaml"


@pytest.fixture(scope="module")
def other(description: Path) -> Robot:
    return keystride.load_robot(description)


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
    rollout = run_episodes(Hold(other), other, exact_stance(other), script_goals(SCRIPT, robot=other))
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


def test_a_policy_is_trained_for_it_exported_and_played(description: Path, other: Robot, tmp_path: Path) -> None:
    """Two iterations in one process; `policy.onnx` is what the run exports."""
    network = replace(CPU.network, width=16, feedforward=16, mlp=(16,))
    discriminator = DiscriminatorConfig(hidden=(8,), updates=1, batch=16, replay=256)
    sizes = {"environments": 8, "horizon": 4, "steps": 64, "network": network, "discriminator": discriminator}
    config = keystride.TrainingConfig(
        name="other",
        runs=tmp_path,
        robot=str(description),
        processes=1,
        evaluation=EvaluationConfig(robots=2, control_steps=10),
        learner=replace(CPU, **sizes),
    )
    assert keystride.train(config).steps == 64
    assert config_of_run(config.folder).robot == str(description)
    policy = keystride.load_policy(config.folder, robot=other)
    assert policy.metadata.robot == "other"
    assert policy.metadata.joint_stiffness == (60.0,) * 12
    recording = keystride.play(SCRIPT, policy, robot=other)
    assert np.isfinite(recording.errors[:, 0]).all()
    with pytest.raises(Exception, match="a policy for other, not for unitree_go2"):
        keystride.load_policy(config.folder / "policy.onnx")


def test_a_policy_for_another_robot_is_refused(other: Robot) -> None:
    with pytest.raises(Exception, match="a policy for unitree_go2, not for other"):
        keystride.play("walk", "go2-position", robot=other)
