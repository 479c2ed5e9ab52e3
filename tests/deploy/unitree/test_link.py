"""Over DDS on the loopback interface, both ends in this process."""

import os
import time
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")

from keystride.deploy.pose.source import Mounting, UdpPoses
from keystride.deploy.safety import MotorCommand, brake
from keystride.deploy.sim.disturbances import Disturbances
from keystride.deploy.sim.robot import SimulatedGo2
from keystride.deploy.sim.server import SimulatedConfig, SimulatedRobot, simulated_world
from keystride.deploy.unitree.codec import MOTION_SWITCHER, SPORT, decode_command, encode_command, encode_state
from keystride.deploy.unitree.dds_types import LowCmd, LowState
from keystride.deploy.unitree.link import (
    LOW_CMD_TOPIC,
    LOW_STATE_TOPIC,
    Client,
    Publication,
    RobotLink,
    Server,
    ServiceError,
    Subscription,
    active_mode,
    dds_config,
    join,
    release_motors,
)
from keystride.deploy.unitree.wire_format import seal
from keystride.robot.go2 import GO2

DOMAIN = 20 + (os.getpid() + 7) % 200


@pytest.fixture(scope="module")
def participant():
    return join("lo", DOMAIN)


def keep(condition, action, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        action()
        time.sleep(0.005)
    return condition()


def test_loopback_is_found_without_multicast():
    settings = ElementTree.fromstring(dds_config("lo"))
    assert settings.findtext(".//AllowMulticast") == "false"
    assert [peer.get("address") for peer in settings.iter("Peer")] == ["127.0.0.1"]
    assert settings.findtext(".//ParticipantIndex") == "auto"


@pytest.mark.parametrize(("interface", "attribute"), [("eth0", "name"), ("192.168.123.99", "address")])
def test_other_interfaces_by_name_or_address(interface, attribute):
    settings = ElementTree.fromstring(dds_config(interface))
    assert [entry.attrib for entry in settings.iter("NetworkInterface")] == [{attribute: interface}]
    assert settings.find(".//Peer") is None


def test_commands_and_states_cross(participant):
    heard = []
    robot = Subscription(participant, LOW_CMD_TOPIC, LowCmd, heard.append)
    states = Publication(participant, LOW_STATE_TOPIC, LowState)
    link = RobotLink(participant)
    command = MotorCommand(np.arange(12) / 16, np.full(12, 40.0), np.ones(12))
    assert keep(lambda: bool(heard), lambda: link.send(encode_command(GO2, command)))
    assert (decode_command(GO2, heard[0].record).target == command.target).all()
    record = encode_state(GO2, SimulatedGo2(GO2).sense(), 5)
    seal(record)
    assert keep(lambda: link.states.value is not None, lambda: states.send(LowState(record)))
    assert link.states.value is not None
    assert link.states.value.tobytes() == record.tobytes()
    assert link.connected
    broken = record.copy()
    broken["tick"] = 77
    assert keep(lambda: link.corrupt > 0, lambda: states.send(LowState(broken)))
    assert link.states.value["tick"] == 5
    for part in (robot, link):
        part.close()


def test_a_writer_that_goes_away_does_not_deafen_a_reader(participant):
    heard = []
    reader = Subscription(participant, "rt/away", LowCmd, heard.append)
    for _ in range(2):
        heard.clear()
        writers = [Publication(participant, "rt/away", LowCmd)]
        assert keep(lambda: bool(heard), lambda: writers[0].send(LowCmd(encode_command(GO2, brake()))))  # noqa: B023
        writers.clear()
        time.sleep(0.2)
    reader.close()


def test_requests_are_answered_and_silence_is_an_error(participant):
    server = Server(participant, "echo", lambda api, parameter: (api, parameter))
    client = Client(participant, "echo")
    assert client.call(12, "hello") == (12, "hello")
    with pytest.raises(ServiceError, match="no answer"):
        Client(participant, "nobody").call(1, attempts=1)
    server.close()
    client.close()


def test_the_motion_service_is_released_before_anything_else(participant):
    """Against the simulated robot, stepped by hand: laid down first, then released, and only then it obeys."""
    source = UdpPoses(Mounting(), port=0)
    config = SimulatedConfig(posture="standing", sport=True, noise=False, pose_port=source.port)
    robot = SimulatedRobot(simulated_world(GO2, config), participant, config)
    switcher, sport = Client(participant, MOTION_SWITCHER), Client(participant, SPORT)
    assert active_mode(switcher) == "normal"
    assert release_motors(switcher, sport, settle=0.0) == ["normal"]
    assert active_mode(switcher) == ""
    assert switcher.call(4711)[0] != 0
    robot.step(time.monotonic())
    assert not robot.world.commanded
    link = RobotLink(participant)
    assert keep(
        lambda: robot.world.commanded, lambda: (link.send(encode_command(GO2, brake())), robot.step(time.monotonic()))
    )
    assert keep(
        lambda: link.states.value is not None and source.poses.value is not None, lambda: robot.step(time.monotonic())
    )
    robot.closed = True
    robot.run()
    robot.close()
    source.close()
    link.close()


def test_disturbances_pass():
    disturbances = Disturbances()
    disturbances.set("loss", 0.2, 1.0, now=10.0)
    assert disturbances.get("loss", 10.9) == 0.2
    assert disturbances.get("loss", 11.1) == 0.0
    with pytest.raises(ValueError, match="expected one of"):
        disturbances.set("rain", 1.0, 1.0, now=0.0)
    with pytest.raises(ValueError, match="unknown button"):
        disturbances.set("button", "Z", 1.0, now=0.0)


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_an_answer_that_is_invalid_is_a_service_error(participant, text):
    server = Server(participant, "nonsense", lambda api, parameter: (0, text))
    client = Client(participant, "nonsense")
    with pytest.raises(ServiceError, match="invalid answer"):
        active_mode(client)
    server.close()
    client.close()
