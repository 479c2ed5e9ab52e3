"""The Unitree Go2, with the figures of its published URDF and of the MuJoCo Menagerie model (both BSD-3)."""

from pathlib import Path

from keystride.robot.description import Leg, Robot

THIGH = CALF = 0.213  # m


def _leg(name: str, front: bool, left: bool) -> Leg:
    x, y = (1.0 if front else -1.0), (1.0 if left else -1.0)
    thigh_range = (-1.5708, 3.4907) if front else (-0.5236, 4.5379)
    return Leg(
        name=name,
        hip_in_base=(x * 0.1934, y * 0.0465, 0.0),
        thigh_in_hip=(0.0, y * 0.0955, 0.0),
        thigh_length=THIGH,
        calf_length=CALF,
        lower=(-1.0472, thigh_range[0], -2.7227),
        upper=(1.0472, thigh_range[1], -0.83776),
        torque=(23.7, 23.7, 45.43),
        speed=(30.1, 30.1, 15.70),
        stance=(0.0, 0.8, -1.5),
    )


GO2 = Robot(
    name="unitree_go2",
    model_path=Path(__file__).with_name("go2.xml"),
    legs=(
        _leg("FL", front=True, left=True),
        _leg("FR", front=True, left=False),
        _leg("RL", front=False, left=True),
        _leg("RR", front=False, left=False),
    ),
    foot_radius=0.022,
    # The paper gives no gains; with these the robot stands without sagging, and PD control at 200 Hz is stable.
    stiffness=40.0,
    damping=1.0,
    full_torque_speed=0.45,  # 13.5 of 30 rad/s: Unitree's torque-speed curve of the Go2 motor (unitree_rl_lab, BSD-3)
    action_scale=0.5,
    trunk_half_size=(0.1881, 0.04675, 0.057),
)
