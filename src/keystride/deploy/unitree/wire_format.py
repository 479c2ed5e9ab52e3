"""Unitree's low-level messages as NumPy records: the C struct, its checksum, and its bytes on the wire.

The field lists follow Unitree's published IDL (unitree_go: LowCmd_, LowState_). One table of fields serves three
purposes: the aligned C struct over which the robot computes its checksum, the place of each byte in the CDR stream,
and the DDS types in link.py. A message converts to and from the wire in one array operation.
"""

import sys
import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, Union

import numpy as np
from numpy.typing import NDArray

from keystride.robot.description import Robot

NumberType = Literal["u1", "i2", "u2", "i4", "u4", "f4"]
Bytes = NDArray[np.uint8]
Places = NDArray[np.intp]
Record = np.ndarray[Any, Any]  # zero-dimensional, with the dtype of a Struct

CDR_HEADERS = (b"\x00\x01", b"\x00\x07")  # little-endian, plain XCDR1 and XCDR2: identical for members of up to 4 bytes
HEADER_SIZE = 4

MOTORS = 20  # the messages have room for 20; a Go2 uses the first 12
MOTOR_LEGS = ("FR", "FL", "RR", "RL")  # three motors each: hip, thigh, calf


@dataclass(frozen=True)
class Field:
    name: str
    kind: Union[NumberType, "Struct"]
    count: int | None = None  # None for a single value

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.kind.dtype if isinstance(self.kind, Struct) else np.dtype(f"<{self.kind}")


@dataclass(frozen=True)
class Struct:
    """A fixed-size message: its DDS type name and its fields in order."""

    name: str
    fields: tuple[Field, ...]

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Memory layout of the C struct."""
        members = [(f.name, f.dtype) if f.count is None else (f.name, f.dtype, (f.count,)) for f in self.fields]
        return np.dtype(members, align=True)

    @cached_property
    def wire(self) -> tuple[Places, Places]:
        """Byte positions in the stream, and the corresponding positions in the C struct."""
        places = list(_walk(self, base=0, cursor=0))
        stream = np.concatenate([np.arange(at, at + size) for at, _, size in places])
        struct = np.concatenate([np.arange(at, at + size) for _, at, size in places])
        return stream, struct

    def new(self) -> Record:
        return np.zeros((), self.dtype)


def _walk(struct: Struct, base: int, cursor: int):
    """Yield (offset in the stream, offset in the struct, size) of every primitive: CDR aligns each, but pads no struct's end."""
    offsets = struct.dtype.fields
    assert offsets is not None
    for field in struct.fields:
        for index in range(field.count or 1):
            at = base + offsets[field.name][1] + index * field.dtype.itemsize
            if isinstance(field.kind, Struct):
                for place in _walk(field.kind, at, cursor):
                    cursor = place[0] + place[2]
                    yield place
            else:
                size = field.dtype.itemsize
                cursor = -(-cursor // size) * size
                yield cursor, at, size
                cursor += size


def to_wire(struct: Struct, record: Record) -> bytes:
    stream, source = struct.wire
    body = np.zeros(stream[-1] + 1, np.uint8)
    body[stream] = _bytes_of(record)[source]
    return CDR_HEADERS[0] + b"\x00\x00" + body.tobytes()


def from_wire(struct: Struct, data: bytes) -> Record:
    """Decode a stream. Raise ValueError for an unexpected encoding or length."""
    stream, target = struct.wire
    if data[:2] not in CDR_HEADERS:
        raise ValueError(f"{struct.name}: unknown encoding {data[:2].hex()}")
    body = np.frombuffer(data, np.uint8, offset=HEADER_SIZE)
    if len(body) <= stream[-1]:
        raise ValueError(f"{struct.name}: {len(body)} bytes, expected {stream[-1] + 1}")
    record = struct.new()
    _bytes_of(record)[target] = body[stream]
    return record


def _bytes_of(record: Record) -> Bytes:
    return record.reshape(1).view(np.uint8)


_BIT_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc32_mpeg2(words: bytes) -> int:
    """Return the CRC-32/MPEG-2 of little-endian 32-bit words, each processed from its highest bit.

    zlib computes the bit-reversed CRC with the same polynomial, so reversed bits in and out give this one.
    """
    swapped = np.frombuffer(words, "<u4").astype(">u4").tobytes()
    mirrored = zlib.crc32(swapped.translate(_BIT_REVERSED)) ^ 0xFFFFFFFF
    return int.from_bytes(mirrored.to_bytes(4, "little").translate(_BIT_REVERSED), "big")


def checksum(record: Record) -> int:
    """Return the checksum of the C struct without its last word, which holds the checksum."""
    return crc32_mpeg2(record.tobytes()[:-4])


def seal(record: Record) -> None:
    record["crc"] = checksum(record)


def is_sealed(record: Record) -> bool:
    return int(record["crc"]) == checksum(record)


@cache
def motor_order(robot: Robot) -> Places:
    """Return the joint of each motor: motors = joints[order]."""
    legs = [robot.leg_names.index(leg) for leg in MOTOR_LEGS]
    return np.array([3 * leg + joint for leg in legs for joint in range(3)])


@cache
def joint_order(robot: Robot) -> Places:
    """Return the motor of each joint: joints = motors[order]."""
    return np.argsort(motor_order(robot))


assert sys.byteorder == "little", "Unitree's checksum is over little-endian memory"

_HEADER = (
    Field("head", "u1", 2),
    Field("level_flag", "u1"),
    Field("frame_reserve", "u1"),
    Field("sn", "u4", 2),
    Field("version", "u4", 2),
    Field("bandwidth", "u2"),
)

MOTOR_CMD = Struct(
    "unitree_go.msg.dds_.MotorCmd_",
    (
        Field("mode", "u1"),
        *(Field(name, "f4") for name in ("q", "dq", "tau", "kp", "kd")),
        Field("reserve", "u4", 3),
    ),
)
BMS_CMD = Struct("unitree_go.msg.dds_.BmsCmd_", (Field("off", "u1"), Field("reserve", "u1", 3)))
LOW_CMD = Struct(
    "unitree_go.msg.dds_.LowCmd_",
    (
        *_HEADER,
        Field("motor_cmd", MOTOR_CMD, MOTORS),
        Field("bms_cmd", BMS_CMD),
        Field("wireless_remote", "u1", 40),
        Field("led", "u1", 12),
        Field("fan", "u1", 2),
        Field("gpio", "u1"),
        Field("reserve", "u4"),
        Field("crc", "u4"),
    ),
)

IMU_STATE = Struct(
    "unitree_go.msg.dds_.IMUState_",
    (
        Field("quaternion", "f4", 4),  # w x y z
        Field("gyroscope", "f4", 3),
        Field("accelerometer", "f4", 3),
        Field("rpy", "f4", 3),
        Field("temperature", "u1"),
    ),
)
MOTOR_STATE = Struct(
    "unitree_go.msg.dds_.MotorState_",
    (
        Field("mode", "u1"),
        *(Field(name, "f4") for name in ("q", "dq", "ddq", "tau_est", "q_raw", "dq_raw", "ddq_raw")),
        Field("temperature", "u1"),
        Field("lost", "u4"),
        Field("reserve", "u4", 2),
    ),
)
BMS_STATE = Struct(
    "unitree_go.msg.dds_.BmsState_",
    (
        *(Field(name, "u1") for name in ("version_high", "version_low", "status", "soc")),
        Field("current", "i4"),
        Field("cycle", "u2"),
        Field("bq_ntc", "u1", 2),
        Field("mcu_ntc", "u1", 2),
        Field("cell_vol", "u2", 15),
    ),
)
LOW_STATE = Struct(
    "unitree_go.msg.dds_.LowState_",
    (
        *_HEADER,
        Field("imu_state", IMU_STATE),
        Field("motor_state", MOTOR_STATE, MOTORS),
        Field("bms_state", BMS_STATE),
        Field("foot_force", "i2", 4),
        Field("foot_force_est", "i2", 4),
        Field("tick", "u4"),
        Field("wireless_remote", "u1", 40),
        Field("bit_flag", "u1"),
        Field("adc_reel", "f4"),
        Field("temperature_ntc1", "u1"),
        Field("temperature_ntc2", "u1"),
        Field("power_v", "f4"),
        Field("power_a", "f4"),
        Field("fan_frequency", "u2", 4),
        Field("reserve", "u4"),
        Field("crc", "u4"),
    ),
)
