import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")

from keystride.deploy.safety import MotorCommand
from keystride.deploy.unitree.codec import decode_state, encode_command
from keystride.deploy.unitree.dds_types import LowCmd, LowState, idl_type
from keystride.deploy.unitree.link import RobotLink, join
from keystride.deploy.unitree.wire_format import LOW_CMD, LOW_STATE, to_wire
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
    domain = 20 + os.getpid() % 200
    command = [str(OLD_PYTHON), str(Path(__file__).with_name("peer.py")), str(domain)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as peer:
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
