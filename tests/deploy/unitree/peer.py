"""The other end of a link, as Unitree's SDK has it: Cyclone DDS 0.10.2 and plain uint8. Run by its own Python.

Answers the first low command with a low state whose joints are the command's targets, and prints what it saw.
"""

import sys
from dataclasses import dataclass
from typing import Any

from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl import annotations as annotate
from cyclonedds.idl.types import array, float32, int16, int32, uint8, uint16, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

CONFIG = """<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>
<MaxAutoParticipantIndex>32</MaxAutoParticipantIndex><Peers><Peer address="127.0.0.1"/></Peers></Discovery>
</Domain></CycloneDDS>"""


def message(made: Any) -> Any:
    annotate.autoid("sequential")(made)
    annotate.final(made)
    return dataclass(made)


@message
class MotorCmd(IdlStruct, typename="unitree_go.msg.dds_.MotorCmd_"):
    mode: uint8
    q: float32
    dq: float32
    tau: float32
    kp: float32
    kd: float32
    reserve: array[uint32, 3]


@message
class BmsCmd(IdlStruct, typename="unitree_go.msg.dds_.BmsCmd_"):
    off: uint8
    reserve: array[uint8, 3]


@message
class LowCmd(IdlStruct, typename="unitree_go.msg.dds_.LowCmd_"):
    head: array[uint8, 2]
    level_flag: uint8
    frame_reserve: uint8
    sn: array[uint32, 2]
    version: array[uint32, 2]
    bandwidth: uint16
    motor_cmd: array[MotorCmd, 20]
    bms_cmd: BmsCmd
    wireless_remote: array[uint8, 40]
    led: array[uint8, 12]
    fan: array[uint8, 2]
    gpio: uint8
    reserve: uint32
    crc: uint32


@message
class IMUState(IdlStruct, typename="unitree_go.msg.dds_.IMUState_"):
    quaternion: array[float32, 4]
    gyroscope: array[float32, 3]
    accelerometer: array[float32, 3]
    rpy: array[float32, 3]
    temperature: uint8


@message
class MotorState(IdlStruct, typename="unitree_go.msg.dds_.MotorState_"):
    mode: uint8
    q: float32
    dq: float32
    ddq: float32
    tau_est: float32
    q_raw: float32
    dq_raw: float32
    ddq_raw: float32
    temperature: uint8
    lost: uint32
    reserve: array[uint32, 2]


@message
class BmsState(IdlStruct, typename="unitree_go.msg.dds_.BmsState_"):
    version_high: uint8
    version_low: uint8
    status: uint8
    soc: uint8
    current: int32
    cycle: uint16
    bq_ntc: array[uint8, 2]
    mcu_ntc: array[uint8, 2]
    cell_vol: array[uint16, 15]


@message
class LowState(IdlStruct, typename="unitree_go.msg.dds_.LowState_"):
    head: array[uint8, 2]
    level_flag: uint8
    frame_reserve: uint8
    sn: array[uint32, 2]
    version: array[uint32, 2]
    bandwidth: uint16
    imu_state: IMUState
    motor_state: array[MotorState, 20]
    bms_state: BmsState
    foot_force: array[int16, 4]
    foot_force_est: array[int16, 4]
    tick: uint32
    wireless_remote: array[uint8, 40]
    bit_flag: uint8
    adc_reel: float32
    temperature_ntc1: uint8
    temperature_ntc2: uint8
    power_v: float32
    power_a: float32
    fan_frequency: array[uint16, 4]
    reserve: uint32
    crc: uint32


def state_from(command):
    motors = [MotorState(1, m.q, 0, 0, 0, 0, 0, 0, 33, 0, [0, 0]) for m in command.motor_cmd]
    imu = IMUState([1, 0, 0, 0], [0.5, 0, 0], [0, 0, 9.5], [0, 0, 0], 30)
    bms = BmsState(1, 2, 3, 77, -5, 6, [7, 8], [9, 10], list(range(15)))
    remote = [0, 0, 0, 2] + [0] * 36
    header = (command.head, 255, 0, [1, 2], [3, 4], 5)
    return LowState(
        *header, imu, motors, bms, [1, -2, 3, -4], [0] * 4, 99, remote, 0, 0, 0, 0, 28.5, 1.5, [0] * 4, 0, 0
    )


def main(domain):
    settings = Domain(domain, CONFIG)
    participant = DomainParticipant(domain)
    states = DataWriter(participant, Topic(participant, "rt/lowstate", LowState))
    commands = DataReader(participant, Topic(participant, "rt/lowcmd", LowCmd))
    print("here", flush=True)
    command: Any = commands.take_one(timeout=duration(seconds=30))
    print(list(command.head), command.motor_cmd[0].q, command.motor_cmd[0].kp, command.crc, flush=True)
    for _ in range(100):
        states.write(state_from(command))
        commands.take_one(timeout=duration(seconds=5))
    del settings


main(int(sys.argv[1]))
