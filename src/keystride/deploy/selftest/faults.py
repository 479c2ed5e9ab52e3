"""The rows of the self-test: faults and their expected outcomes."""

from dataclasses import dataclass
from typing import Any

from keystride.deploy.unitree.codec import BATTERY_DISCHARGING

# Lines that the deployment prints, in order.
GUARD_LINE, STANDING_UP_LINE, READY_LINE, RUNNING_LINE, STOPPING_LINE = MARKS = (
    "guard ready",
    "idle -> standing up",
    "standing up -> ready",
    "ready -> running",
    "running -> stopping",
)
UNKNOWN_LINE = "the robot's state is unknown: "
BRAKED_LINE = "guard: braked"
AT = 0.8  # s after one of these lines: the robot is walking, or half-way up or down

PLAYED, REFUSED, STOPPED, KILLED = 0, 2, 3, -9  # exit codes of `keystride deploy go2`

GOES_ON = "continues and plays the script"
COMES_DOWN = "stops, stands, lies down, damping"
DAMPS = "damping at once"
UNSURE = "damping at once, brakes until the operator gives up because the states do not show it"
REFUSES = "refused before any motor moves"


@dataclass(frozen=True)
class Disturb:
    """A disturbance of the simulated robot, by its name in `sim.disturbances`."""

    name: str
    value: Any = True
    seconds: float = 1e9


@dataclass(frozen=True)
class Act:
    """An action on the deploying process or its terminal: see `processes.DeployUnderTest`."""

    kind: str
    what: str = ""


LYING = ("--posture", "lying", "--no-sport")


@dataclass(frozen=True)
class Case:
    name: str
    expected: str  # in words, for the table
    exit_code: int
    reason: str = ""
    does: Disturb | Act | None = None  # the fault
    after: str = RUNNING_LINE  # the line after which the fault is caused
    at: float = AT  # s after that line
    before: Disturb | None = None  # a disturbance that is active from the beginning
    robot: tuple[str, ...] = LYING
    deploy: tuple[str, ...] = ()
    policy: str | None = None  # policy to use instead of the one under test
    output: str = "terminal"  # or pipe
    prints: str = ""  # part of a line that must be printed
    disk_full: bool = False  # files of the deployment cannot grow beyond a few kilobytes
    no_higher: bool = False  # the trunk may not rise after the fault
    confirmed: bool = True  # if false, the checklist is answered with n
    impossible: bool = False  # use a script that no Go2 can play
    soft_within: float | None = None  # s after the fault within which all joints must be released
    upright: bool = True  # whether the robot has to stay upright
    never_stiff: bool = False
    unknown: bool | None = False  # whether its state must be called unknown before the operator gives up; None: it may
    gives_up: bool = True
    guarded: bool = False  # whether a guard has to brake in time
    bounded: bool = False  # whether the flight log has to show that no command changes targets or gains by too much
    stalled: float = 0.0  # s without a command that the flight log must show, followed by a leap of the target
    held: bool = False  # whether joints may be held at the end because no commands arrive
    still_commanded: bool | None = None  # whether commands must arrive until the end
    back_to_normal: bool = False  # whether the robot's motion service has to hold the motors at the end

    @property
    def controlled(self) -> bool:
        """Whether the robot has to lie down under control instead of being dropped."""
        return self.expected == COMES_DOWN


def _damps(name: str, does: Disturb | Act, reason: str = "emergency stop", **fields: Any) -> Case:
    return Case(name, exit_code=STOPPED, reason=reason, does=does, **{"expected": DAMPS, "soft_within": 0.3, **fields})


def _unsure(name: str, does: Disturb, reason: str, **fields: Any) -> Case:
    return _damps(name, does, reason, **{"expected": UNSURE, "unknown": True, **fields})


def _comes_down(name: str, does: Disturb | Act | None, reason: str, **fields: Any) -> Case:
    return Case(name, COMES_DOWN, STOPPED, reason, does, **fields)


CALM = Case("no fault", GOES_ON, PLAYED)

PROCESS: tuple[Case, ...] = (
    _damps("emergency key", Act("key", " ")),
    _damps("Ctrl-C", Act("key", "\x03")),
    _damps("Ctrl-Z", Act("key", "\x1a")),
    _damps("Ctrl-S, then the emergency key", Act("keys", "\x13 ")),
    _damps("terminal frozen, then the emergency key", Act("freeze and key", " ")),
    _damps("terminal closed", Act("hang up")),
    *(_damps(name, Act("signal", name)) for name in ("SIGINT", "SIGTERM", "SIGTSTP")),
    _comes_down("s key", Act("key", "s"), "stopped by the operator"),
    Case(
        "s key while standing up",
        "lies down without rising first",
        STOPPED,
        "stopped by the operator",
        Act("key", "s"),
        after=STANDING_UP_LINE,
        no_higher=True,
    ),
    Case("output piped into head", GOES_ON, PLAYED, does=Act("close output"), output="pipe"),
    Case(
        "disk full while logging",
        "continues, plays the script, says that the log is incomplete",
        PLAYED,
        deploy=("--log", "FOLDER"),
        prints="flight log incomplete",
        disk_full=True,
    ),
    Case(
        "process killed with -9",
        "the guard brakes the robot",
        KILLED,
        does=Act("kill"),
        guarded=True,
        still_commanded=True,
    ),
    Case(
        "process killed with -9 while starting",
        "no motor moves",
        KILLED,
        does=Act("kill"),
        after=GUARD_LINE,
        at=0.0,
        never_stiff=True,
    ),
    *(
        Case(
            f"process killed with -9 while {state}",
            "the guard brakes the robot",
            KILLED,
            does=Act("kill"),
            after=line,
            guarded=True,
            still_commanded=True,
        )
        for state, line in (("standing up", STANDING_UP_LINE), ("lying down", STOPPING_LINE))
    ),
    Case(
        "process stopped for 1 s (SIGSTOP, debugger, swap)",
        "the guard brakes the robot, damping on return",
        STOPPED,
        does=Act("stop", "1.0"),
        guarded=True,
    ),
    Case(
        "process and guard stopped for 1 s, as in a suspended computer",
        "damping on return",
        STOPPED,
        does=Act("stop both", "1.0"),
        soft_within=1.3,
        upright=False,
    ),
    Case(
        "process and guard stopped for 1 s, guard on the robot's computer",
        "the second guard brakes the robot, damping on return",
        STOPPED,
        does=Act("stop both", "1.0"),
        deploy=("--guard", "SECOND"),
        guarded=True,
    ),
    Case(
        "policy blocks the whole process",
        "the guard brakes the robot, damping on return",
        STOPPED,
        policy="STUB-HOG",
        guarded=True,
    ),
    Case(
        "policy blocks the whole process for 30 ms, then its target leaps",
        "continues, plays the script, moves no target by more than 0.24 rad per command",
        PLAYED,
        policy="STUB-LEAP",
        deploy=("--log", "FOLDER"),
        bounded=True,
        stalled=0.025,
    ),
    Case(
        "policy with other gains than those of standing up",
        "continues, plays the script, changes gains by at most 0.8 N m/rad and 0.06 N m s/rad per command",
        PLAYED,
        policy="STUB-STIFF",
        deploy=("--log", "FOLDER"),
        bounded=True,
    ),
    Case(
        "second deployment started meanwhile",
        "refuses the second, plays the script",
        PLAYED,
        does=Act("start again"),  # start the script when the second deployment has ended
        after=READY_LINE,
        at=0.0,
        deploy=("--start-after", "3600"),
        prints="another program sends commands",
    ),
    Case(
        "guard killed with -9 before the robot moves",
        "damping, no motor moves",
        STOPPED,
        "emergency stop",
        Act("kill guard"),
        after=GUARD_LINE,
        at=0.0,
        never_stiff=True,
    ),
    _damps("guard killed with -9", Act("kill guard")),
    _damps("guard stopped (SIGSTOP)", Act("stop guard"), soft_within=2.0),
    Case(
        "process and guard killed with -9, robot brakes by itself",
        "the robot's own motor board brakes",
        KILLED,
        does=Act("kill both"),
        robot=(*LYING, "--brake-after", "0.1"),
        still_commanded=False,
    ),
    Case(
        "process and guard killed with -9, guard on the robot's computer",
        "the second guard brakes the robot",
        KILLED,
        does=Act("kill both"),
        deploy=("--guard", "SECOND"),
        guarded=True,
        still_commanded=True,
    ),
)

BEFORE: tuple[Case, ...] = (
    Case(
        "script with impossible timing",
        REFUSES,
        REFUSED,
        "exceeds the robot's limit",
        impossible=True,
        never_stiff=True,
    ),
    Case("checklist answered with no", REFUSES, REFUSED, "not confirmed", confirmed=False, never_stiff=True),
    Case("policy with a wrong output shape", REFUSES, REFUSED, "cannot be run", policy="STUB-SHAPE", never_stiff=True),
    Case(
        "second guard cannot reach the robot",
        REFUSES,
        REFUSED,
        "cannot reach the robot",
        deploy=("--guard", "ELSEWHERE"),
        never_stiff=True,
    ),
    Case(
        "no poses, sport service active",
        "refused, the motion service keeps the motors",
        REFUSED,
        "no pose from",
        robot=(),
        deploy=("--pose", "udp://127.0.0.1:0"),
        never_stiff=True,
        back_to_normal=True,
    ),
    Case(
        "sport service answers, but the robot stays up",
        "refused, the motion service keeps the motors",
        REFUSED,
        "still stands",
        robot=(),
        before=Disturb("service_stays_up"),
        prints="the motion service normal holds its motors",
        never_stiff=True,
        back_to_normal=True,
    ),
    Case(
        "simulated poses for a real robot",
        REFUSES,
        REFUSED,
        "--pose sim",
        deploy=("--interface", "eth0", "--policy", "go2-position", "--pose", "sim"),
        never_stiff=True,
    ),
    Case(
        "low states without a checksum",
        REFUSES,
        REFUSED,
        "checksum",
        before=Disturb("states_unsealed"),
        never_stiff=True,
    ),
    Case(
        "robot upside down at the start",
        "refused, damping, no motor moves",
        STOPPED,
        "tilted too far",
        robot=("--posture", "upside-down", "--no-sport"),
        upright=False,
        never_stiff=True,
    ),
    Case(
        "joint measured out of its range at the start",
        "refused, damping, no motor moves",
        STOPPED,
        "joint out of range",
        before=Disturb("joint_offset", 3.0),
        never_stiff=True,
    ),
    Case(
        "another program sends commands at the start",
        REFUSES,
        REFUSED,
        "another program sends commands",
        before=Disturb("other_writer"),
        never_stiff=True,
    ),
    Case(
        "second robot on the network at the start",
        REFUSES,
        REFUSED,
        "more than one robot",
        before=Disturb("other_robot"),
        never_stiff=True,
    ),
    Case(
        "robot ignores commands",
        "damping when it does not stand up",
        STOPPED,
        "motors do not obey",
        before=Disturb("deaf"),
        never_stiff=True,
    ),
)

STATE_CASES: tuple[Case, ...] = (
    _unsure("low state lost", Disturb("states_off"), "low state lost"),
    _unsure("low state frozen", Disturb("states_frozen"), "low state lost"),
    _damps("ticks count ten times too fast", Disturb("ticks_fast", 20), "robot's clock runs ahead"),
    _damps("IMU frozen", Disturb("imu_frozen"), "IMU frozen"),
    _damps("IMU's orientation frozen", Disturb("orientation_frozen"), "IMU frozen", soft_within=0.5),
    _damps("IMU's orientation all zero", Disturb("orientation_zero"), "low state invalid"),
    _damps("NaN in the accelerometer", Disturb("accelerometer_nan"), "low state invalid"),
    _damps("IMU's orientation jumps by 20 degrees", Disturb("orientation_tilt", 20.0), "IMU contradicts itself"),
    _damps("gyroscope off by 1.5 rad/s", Disturb("gyroscope_offset", 1.5), "IMU contradicts itself", soft_within=0.5),
    _damps("accelerometer without gravity", Disturb("accelerometer_dead"), "IMU contradicts itself", soft_within=1.0),
    _unsure("motors of one leg frozen", Disturb("leg_frozen"), "motor frozen", soft_within=0.5),
    _damps(  # without speeds, braking is not visible while the robot sinks slowly
        "joint speeds all zero",
        Disturb("speeds_zero"),
        "joint angles contradict speeds",
        soft_within=0.6,
        unknown=None,
    ),
    _damps("motors of one leg report zeros", Disturb("leg_zero"), "joint angles contradict speeds"),
    _damps("joint angle of 1e30 rad", Disturb("joint_offset", 1e30), "low state invalid"),
    _damps("joint angle jumps by 0.4 rad", Disturb("joint_offset", 0.4), "joint angles contradict speeds"),
    _unsure("motor with too much torque", Disturb("overtorque", 1), "torque too high"),
    _unsure("joint stalled", Disturb("stalled", 2), "joint stalled", soft_within=1.0),
    _damps("motor reports mode 0", Disturb("motor_off", 4), "motor off", soft_within=0.8),
    _damps("motor loses 200 packets per second", Disturb("motor_lost", 200.0), "motor packet loss", soft_within=0.5),
    _damps("another program sends commands", Disturb("other_writer"), "another program sends commands", upright=False),
    _damps("second robot on the network", Disturb("other_robot"), "second robot on the network"),
    _damps(
        "motion service takes the motors again",
        Disturb("motion_service", "normal"),
        "motion service active again",
        soft_within=3.0,
        back_to_normal=True,
    ),
    _damps("remote's B button", Disturb("button", "B", 0.2)),
    _comes_down("battery at 5%", Disturb("battery", 5.0), "battery low"),
    _comes_down("battery alarm", Disturb("battery_status", BATTERY_DISCHARGING + 3), "battery charging or faulty"),
    _comes_down("motor at 100 degrees", Disturb("motor_temperature", 100.0), "motor too hot"),
    _comes_down("policy slower than its step", None, "policy too late", policy="STUB-SLOW"),
    _damps("policy runs away", Act("wait"), "joint too fast", policy="STUB-RUNAWAY", soft_within=1.0, upright=False),
    Case("fence of 0.3 m", COMES_DOWN, STOPPED, "outside the fence", deploy=("--fence", "0.3")),
)

POSES: tuple[Case, ...] = (
    Case("pose stream lost for 0.1 s", GOES_ON, PLAYED, does=Disturb("pose_off", True, 0.1)),
    _comes_down("pose stream lost for 0.5 s", Disturb("pose_off", True, 0.5), "pose stream lost"),
    _comes_down("pose stream lost for good", Disturb("pose_off"), "pose stream lost"),
    Case("NaN in the pose for 0.1 s", "rejects it and continues", PLAYED, does=Disturb("pose_nan", True, 0.1)),
    _comes_down("NaN in the pose for good", Disturb("pose_nan"), "pose rejected"),
    Case("pose jumps by 1 m for 0.1 s", "rejects it and continues", PLAYED, does=Disturb("pose_shift", 1.0, 0.1)),
    _comes_down("pose jumps by 1 m for good", Disturb("pose_shift", 1.0), "pose rejected"),
    _comes_down("pose frozen", Disturb("pose_frozen"), "pose rejected"),
    _comes_down("pose frozen, with noise and new numbers", Disturb("pose_stuck"), "pose rejected"),
    _comes_down("heading flipped by 180 degrees", Disturb("pose_turn", 180.0), "pose rejected"),
    _comes_down("heading drifts by 40 degrees per second", Disturb("pose_spin", 40.0), "pose rejected"),
    _comes_down("pose drifts by 0.5 m/s", Disturb("pose_drift", 0.5), "pose rejected"),
    _comes_down("pose tilted by 20 degrees", Disturb("pose_tilt", 20.0), "pose rejected"),
    _comes_down("pose source's clock set back by 10 s", Disturb("pose_clock", -10.0), "pose rejected"),
    Case("pose source's clock set forward by 10 s", GOES_ON, PLAYED, does=Disturb("pose_clock", 10.0)),
    _comes_down("poses 0.15 s late", Disturb("pose_late", 0.15), "pose rejected"),
    *(
        Case(
            f"markers mounted at {angle} degrees, --pose-yaw forgotten",
            "lies down again before it walks",
            STOPPED,
            "heading of the poses is wrong",
            deploy=("--pose-yaw", angle),
            prints="standing up -> stopping",
        )
        for angle in ("30", "90", "180")
    ),
)

NETWORK: tuple[Case, ...] = (
    Case(
        "no fault, sport service active",
        "lays the robot down, releases the service, plays the script",
        PLAYED,
        robot=(),
    ),
    Case(
        "sport service active, selected again at the end",
        "plays the script, selects the service again",
        PLAYED,
        robot=(),
        deploy=("--restore",),
        back_to_normal=True,
    ),
    Case("leg odometry instead of motion capture", GOES_ON, PLAYED, deploy=("--pose", "odometry")),
    Case("20% of all packets lost", GOES_ON, PLAYED, robot=(*LYING, "--loss", "0.2")),
    _damps("90% of all packets lost", Disturb("loss", 0.9), "low state", soft_within=1.5, upright=False),
    Case("latency spike of 50 ms", GOES_ON, PLAYED, does=Disturb("delay", 0.05, 0.1)),
    Case(
        "cable pulled for 3 s",
        "says that the state is unknown, brakes the robot when it is back",
        STOPPED,
        "low state lost",
        Disturb("loss", 1.0, 3.0),
        soft_within=3.3,
        unknown=True,
        gives_up=False,
        upright=False,
        prints="the robot lies limp",
    ),
    Case(
        "cable pulled for good",
        "says that the state is unknown until the operator gives up",
        STOPPED,
        "low state lost",
        Disturb("loss", 1.0),
        unknown=True,
        held=True,
        upright=False,
    ),
    Case(
        "robot ignores commands for 3 s",
        "says that the state is unknown, brakes the robot when it obeys again",
        STOPPED,
        "motors do not obey",
        Disturb("deaf", True, 3.0),
        soft_within=3.3,
        unknown=True,
        gives_up=False,
        upright=False,
        prints="the robot lies limp",
    ),
    Case(
        "robot ignores commands for good",
        "says that the state is unknown until the operator gives up",
        STOPPED,
        "motors do not obey",
        Disturb("deaf"),
        unknown=True,
        held=True,
        upright=False,
    ),
)

GROUPS: dict[str, tuple[Case, ...]] = {
    "network": NETWORK,
    "process and terminal": PROCESS,
    "before the start": BEFORE,
    "robot": STATE_CASES,
    "poses": POSES,
}
CASES: tuple[Case, ...] = tuple(case for group in GROUPS.values() for case in group)


def case_table() -> str:
    """Return all rows as a Markdown table; those with the same group and expected outcome share a line."""
    rows = [["group", "expected", "faults"], ["---"] * 3]
    for group, cases in GROUPS.items():
        for expected in dict.fromkeys(case.expected for case in cases):
            rows.append([group, expected, "; ".join(case.name for case in cases if case.expected == expected)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
