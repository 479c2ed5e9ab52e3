"""The DDS types, and both ends of a link in this process, over the loopback interface."""

import os
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")

from keystride.deploy.pose.source import Mounting, UdpPoses
from keystride.deploy.safety import MotorCommand, brake
from keystride.deploy.selftest.processes import reserved_domain
from keystride.deploy.sim.robot import SimulatedGo2
from keystride.deploy.sim.server import SimulatedConfig, SimulatedRobot, simulated_world
from keystride.deploy.unitree.codec import (
    MOTION_SWITCHER,
    RELEASE_MODE,
    SPORT,
    decode_command,
    decode_state,
    encode_command,
    encode_state,
)
from keystride.deploy.unitree.link import (
    LOW_CMD_TOPIC,
    LOW_STATE_TOPIC,
    SENDER_GONE,
    Client,
    LowCmd,
    LowState,
    Publication,
    RobotLink,
    Server,
    ServiceError,
    Subscription,
    active_mode,
    dds_config,
    idl_type,
    join,
    release_motors,
)
from keystride.deploy.unitree.wire_format import LOW_CMD, LOW_STATE, seal, to_wire
from keystride.robot.go2 import GO2

from .test_wire_format import random_record

OLD_PYTHON = os.environ.get("KEYSTRIDE_CYCLONEDDS_0_10")  # a Python that has cyclonedds 0.10.2 installed


@pytest.mark.parametrize("message", [LOW_CMD, LOW_STATE])
def test_the_wire_is_what_cyclone_dds_makes_of_the_fields(message):
    record = random_record(message, seed=5)
    wire = to_wire(message, record)
    sample = idl_type(message).deserialize(wire)
    assert sample.crc == record["crc"]
    assert list(sample.head) == list(record["head"])
    assert sample.serialize().rstrip(b"\0") == wire.rstrip(b"\0")


@pytest.mark.parametrize(("kind", "message"), [(LowCmd, LOW_CMD), (LowState, LOW_STATE)])
def test_records_are_samples(kind, message):
    record = random_record(message, seed=6)
    assert kind.deserialize(kind(record).serialize()).record.tobytes() == record.tobytes()


def test_uint8_is_declared_as_byte():
    """Otherwise peers of version 0.10.2 crash on the type information."""
    from cyclonedds.idl import types

    assert idl_type(LOW_CMD).__annotations__["level_flag"] is types.byte
    assert idl_type(LOW_STATE).__annotations__["bit_flag"] is types.byte


@pytest.mark.skipif(OLD_PYTHON is None, reason="KEYSTRIDE_CYCLONEDDS_0_10 names no Python with cyclonedds 0.10.2")
def test_round_trip_with_version_0_10_2():
    command = [str(OLD_PYTHON), str(Path(__file__).with_name("peer.py"))]
    with (
        reserved_domain() as domain,
        subprocess.Popen([*command, str(domain)], stdout=subprocess.PIPE, text=True) as peer,
    ):
        assert peer.stdout is not None
        assert peer.stdout.readline() == "here\n"
        link = RobotLink(join("lo", domain))
        record = encode_command(GO2, MotorCommand(np.arange(12) / 8, np.full(12, 40.0), np.ones(12)))
        until = time.monotonic() + 20.0
        while link.states.value is None and time.monotonic() < until:
            link.send(record)
            time.sleep(0.01)
        state = link.states.value
        assert state is not None
        for _ in range(100):
            link.send(record)
            time.sleep(0.002)
        assert peer.stdout.readline().split() == ["[254,", "239]", "0.375", "40.0", str(int(record["crc"]))]
        peer.kill()
        link.close()
    low = decode_state(GO2, state)
    assert (low.joint_angles == np.arange(12) / 8).all()
    assert (low.battery, low.motor_temperature, low.buttons) == (77, 33, {"B"})
    assert state["bms_state"]["cell_vol"][14] == 14
    assert list(state["foot_force"]) == [1, -2, 3, -4]
    assert float(state["power_v"]) == 28.5


@pytest.fixture(scope="module")
def participant():
    with reserved_domain() as domain:
        yield join("lo", domain)


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


def test_states_of_a_second_robot_are_counted_and_not_used(participant):
    first, second = (Publication(participant, LOW_STATE_TOPIC, LowState) for _ in range(2))
    link = RobotLink(participant)
    ours, theirs = (encode_state(GO2, SimulatedGo2(GO2).sense(), tick) for tick in (5, 1_000_005))
    for record in (ours, theirs):
        seal(record)
    assert keep(lambda: link.states.value is not None, lambda: first.send(LowState(ours)))
    assert link.other_states == 0
    assert keep(lambda: link.other_states > 0, lambda: second.send(LowState(theirs)))
    assert link.states.value is not None
    assert link.states.value["tick"] == 5
    link.close()


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
    assert release_motors(switcher, sport, lambda: True) == ["normal"]
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


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_an_answer_that_is_invalid_is_a_service_error(participant, text):
    server = Server(participant, "nonsense", lambda api, parameter: (0, text))
    client = Client(participant, "nonsense")
    with pytest.raises(ServiceError, match="invalid answer"):
        active_mode(client)
    server.close()
    client.close()


def test_a_robot_that_stays_up_is_not_released(participant):
    asked: list[int] = []
    servers = [
        Server(participant, MOTION_SWITCHER, lambda api, parameter: (asked.append(api) or 0, '{"name": "normal"}')),
        Server(participant, SPORT, lambda api, parameter: (0, "")),
    ]
    switcher, sport = Client(participant, MOTION_SWITCHER), Client(participant, SPORT)
    with pytest.raises(ServiceError, match=r"still stands after 0\.1 s"):
        release_motors(switcher, sport, lambda: False, settle=0.1)
    assert RELEASE_MODE not in asked
    for part in (*servers, switcher, sport):
        part.close()


def test_a_robot_that_comes_back_after_silence_is_not_a_second_one(participant):
    link = RobotLink(participant)
    record = encode_state(GO2, SimulatedGo2(GO2).sense(), 1)
    seal(record)
    for count in (1, 2):
        sender = Publication(participant, LOW_STATE_TOPIC, LowState)
        assert keep(lambda count=count: link.states.count >= count, lambda sender=sender: sender.send(LowState(record)))
        time.sleep(SENDER_GONE + 0.2)
    assert link.other_states == 0
    link.close()
