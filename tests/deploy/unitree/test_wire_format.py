import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystride.deploy.unitree import wire_format
from keystride.deploy.unitree.wire_format import LOW_CMD, LOW_STATE, Field, Struct
from keystride.robot.go2 import GO2


def bitwise_crc(words: list[int]) -> int:
    """CRC-32/MPEG-2 by its definition, one bit at a time."""
    crc = 0xFFFFFFFF
    for word in words:
        for bit in range(31, -1, -1):
            carry = (crc >> 31) ^ (word >> bit & 1)
            crc = (crc << 1 & 0xFFFFFFFF) ^ (0x04C11DB7 if carry else 0)
    return crc


def random_record(message: Struct, seed: int = 0) -> np.ndarray:
    record = message.new()
    _, members = message.wire
    record.reshape(1).view(np.uint8)[members] = np.random.default_rng(seed).integers(0, 100, len(members))
    return record


def test_sizes_are_those_of_the_c_structs():
    assert LOW_CMD.dtype.itemsize == 812
    assert LOW_STATE.dtype.itemsize == 1180


def test_a_command_lies_in_memory_as_c_would_have_it():
    record = LOW_CMD.new()
    record["head"], record["level_flag"], record["bandwidth"] = (0xFE, 0xEF), 0xFF, 7
    record["motor_cmd"]["q"] = np.arange(20)
    record["motor_cmd"]["kd"][19] = 3.5
    record["gpio"], record["crc"] = 9, 0x01020304
    motors = b"".join(struct.pack("<B3x5f3I", 0, i, 0, 0, 0, 3.5 if i == 19 else 0, 0, 0, 0) for i in range(20))
    header = struct.pack("<4B4IH2x", 0xFE, 0xEF, 0xFF, 0, 0, 0, 0, 0, 7)
    assert record.tobytes() == header + motors + struct.pack("<4B54xB1x2I", 0, 0, 0, 0, 9, 0, 0x01020304)


def test_a_state_lies_in_memory_as_c_would_have_it():
    record = random_record(LOW_STATE)
    shape = "<4B4IH2x" + "13fB3x" + "B3x7fB3x3I" * 20 + "4BiH4B15H" + "8hI41B3xf2B2x2f4H2I"
    values = struct.unpack(shape, record.tobytes())
    assert values[0:2] == tuple(record["head"])
    assert values[9:13] == tuple(record["imu_state"]["quaternion"])
    assert values[-1] == record["crc"]
    assert values[-10:-8] == (record["temperature_ntc1"], record["temperature_ntc2"])


@given(st.lists(st.integers(0, 2**32 - 1), max_size=40))
def test_crc_is_the_bitwise_one(words):
    assert wire_format.crc32_mpeg2(struct.pack(f"<{len(words)}I", *words)) == bitwise_crc(words)


def test_crc_of_the_catalogue_agrees():
    """Its check text is 123456789; of whole words, the first eight digits."""
    assert bitwise_crc([0x31323334, 0x35363738]) == wire_format.crc32_mpeg2(b"43218765")


@pytest.mark.parametrize("message", [LOW_CMD, LOW_STATE])
def test_the_checksum_covers_all_but_the_last_word(message):
    record = random_record(message)
    words = struct.unpack(f"<{message.dtype.itemsize // 4}I", record.tobytes())
    assert wire_format.checksum(record) == bitwise_crc(list(words[:-1]))
    wire_format.seal(record)
    assert wire_format.is_sealed(record)
    record["reserve"] = int(record["reserve"]) ^ 1
    assert not wire_format.is_sealed(record)


@pytest.mark.parametrize("message", [LOW_CMD, LOW_STATE])
def test_wire_and_back_changes_nothing(message):
    record = random_record(message, seed=3)
    assert wire_format.from_wire(message, wire_format.to_wire(message, record)).tobytes() == record.tobytes()


def test_the_stream_aligns_values_but_not_structs():
    inner = Struct("inner", (Field("a", "u4"), Field("b", "u1")))
    outer = Struct("outer", (Field("first", inner), Field("second", "u1"), Field("third", "u2")))
    record = outer.new()
    record["first"]["a"], record["first"]["b"], record["second"], record["third"] = 1, 2, 3, 4
    assert wire_format.to_wire(outer, record) == bytes([0, 1, 0, 0]) + bytes([1, 0, 0, 0, 2, 3, 4, 0])


@pytest.mark.parametrize("data", [b"\x00\x00\x00\x00" + bytes(900), b"\x00\x01\x00\x00" + bytes(10), b""])
def test_what_is_no_command_is_refused(data):
    with pytest.raises(ValueError, match="LowCmd_"):
        wire_format.from_wire(LOW_CMD, data)


def test_motors_are_front_right_first():
    names = np.array(GO2.joint_names)[wire_format.motor_order(GO2)]
    assert list(names[:4]) == ["FR_hip_joint", "FR_thigh_joint", "FR_calf_joint", "FL_hip_joint"]
    assert list(names[6:10]) == ["RR_hip_joint", "RR_thigh_joint", "RR_calf_joint", "RL_hip_joint"]
    joints = np.arange(12)
    assert (joints[wire_format.motor_order(GO2)][wire_format.joint_order(GO2)] == joints).all()
