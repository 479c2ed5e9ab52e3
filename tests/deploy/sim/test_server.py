"""The simulated robot as a process."""

import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from keystride.deploy.consistency import STATE_PERIOD
from keystride.deploy.safety import RAMP_GAINS, MotorCommand
from keystride.deploy.selftest.processes import free_port, reserved_domain
from keystride.robot.go2 import GO2


def test_it_ends_with_its_input_and_writes_its_record(tmp_path: Path):
    pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")
    record = tmp_path / "record.npz"
    command = [sys.executable, "-m", "keystride", "deploy", "sim", "--control", "--no-noise", "--no-sport"]
    with (
        reserved_domain() as domain,
        subprocess.Popen(
            [*command, "--domain", str(domain), "--pose-port", str(free_port()), "--record", str(record)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("simulated Go2; poses to udp://127.0.0.1:")
        print('{"disturb": "rain", "value": 1}\n{"disturb": "deaf", "value": true}', file=process.stdin, flush=True)
        process.stdin.close()
        assert "s simulated" in process.stdout.read()
        complaints = process.stderr.read()
    assert process.returncode == 0
    assert complaints.count("error: ") == 1
    assert "unknown disturbance 'rain'" in complaints
    with np.load(record, allow_pickle=False) as saved:
        columns = {name: saved[name] for name in saved.files}
    for name in ("sent", "sent_stiffness"):  # a value per command
        assert len(columns.pop(name)) == 0
    assert len({len(values) for values in columns.values()}) == 1
    assert columns["qpos"].shape[1] == 19
    assert not columns["commanded"].any()  # nobody sent a command
    assert not columns["motion_service"].any()


def test_a_motion_service_that_takes_the_motors_holds_the_robot_as_it_stands():
    pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")
    from keystride.deploy.sim.server import SimulatedConfig, SimulatedRobot, simulated_world
    from keystride.deploy.unitree.link import join

    config = SimulatedConfig(posture="standing", pose_port=free_port())
    with reserved_domain() as domain:
        robot = SimulatedRobot(simulated_world(GO2, config), join("lo", domain), config)
        for now in np.arange(0.0, 1.0, STATE_PERIOD):
            robot.step(float(now))
        robot.mode = ""  # released
        bent = GO2.stance + np.tile((0.0, 0.2, -0.4), 4)  # as in mid stride
        robot.world.receive(MotorCommand(bent, *astuple(RAMP_GAINS)))
        for now in np.arange(1.0, 1.5, STATE_PERIOD):
            robot.step(float(now))
        before = robot.world.data.qpos[7:].copy()
        robot.disturbances.set("motion_service", "normal", 1e9, 1.5)
        for now in np.arange(1.5, 2.0, STATE_PERIOD):
            robot.step(float(now))
        robot.close()
    assert robot.mode == "normal"
    assert np.abs(robot.world.data.qpos[7:] - before).max() < 0.15
