import numpy as np
import pytest

from keystride.commands.main import main
from keystride.deploy.log.flight import FlightLog, read_log
from keystride.deploy.log.replay import COMPARED, flight_summary, joint_difference, simulate
from keystride.deploy.players import TrotStub
from keystride.deploy.sim.rehearsal import rehearse
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log of a walk in the simulator."""
    path = tmp_path_factory.mktemp("flight") / "log"
    log = FlightLog(path, {"policy": "STUB-TROT"})
    rehearsal = rehearse(GO2, TrotStub(GO2), Script(keyframes=(Keyframe(time=1.2, position=(0.3, 0.0)),)), log=log)
    rehearsal.play(20.0)
    assert rehearsal.deployment.safety.played
    log.close(60.0)
    return path


def test_the_simulator_does_with_the_commands_what_the_log_shows(folder):
    """The log comes from the simulator, so the same commands give the same motion until noise adds up."""
    flight = read_log(folder)
    simulated = simulate(flight, GO2)
    assert simulated is not None
    assert len(simulated.time) > COMPARED / 0.002
    assert joint_difference(flight, simulated) < 0.05


def test_another_motion_is_told_apart(folder):
    flight = read_log(folder)
    flight.rows["target"][:, 4] += 0.5
    simulated = simulate(flight, GO2)
    assert simulated is not None
    assert joint_difference(flight, simulated) > 0.05


def test_the_summary_has_events_lateness_and_the_comparison(folder):
    flight = read_log(folder)
    flight.rows["late"][700] = 0.012
    text = "\n".join(flight_summary(flight, simulate(flight, GO2), GO2))
    for part in ("ready -> running", "at worst 12.00 ms", "of its peak torque", "joint angles differ by"):
        assert part in text


def test_a_log_without_a_script_has_nothing_to_simulate(folder):
    flight = read_log(folder)
    flight.rows["state"] = 0
    assert simulate(flight, GO2) is None


def test_the_command_writes_a_picture(folder, capsys):
    assert main(["deploy", "replay", str(folder)]) == 0
    assert (folder / "picture.png").stat().st_size > 20_000
    assert "lateness: median" in capsys.readouterr().out


def test_a_folder_without_a_log_is_one_line(tmp_path, capsys):
    assert main(["deploy", "replay", str(tmp_path)]) == 2
    assert "no flight log" in capsys.readouterr().err


def test_all_rows_are_finite_where_the_robot_was_seen(folder):
    rows = read_log(folder).rows
    for name in ("joint_angles", "torques", "target", "odometry", "pose_position", "base_velocity"):
        assert np.isfinite(rows[name][100:]).all(), name
