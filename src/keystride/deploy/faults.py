"""What can go wrong, and what must come of it: the rows of the self-test, written down before they are run."""

from dataclasses import dataclass
from typing import Any

AT = 0.8  # s after the script's start, while the robot walks

PLAYED, REFUSED, STOPPED, KILLED = 0, 2, 3, -9  # exit codes of `keystride deploy go2`

GOES_ON = "goes on, plays the script to its end"
COMES_DOWN = "stops, stands, lies down, damping"
DAMPS = "damping at once"


@dataclass(frozen=True)
class Disturb:
    """Said to the simulated robot at AT."""

    name: str
    value: Any
    seconds: float = 1e9


@dataclass(frozen=True)
class Act:
    """Done to the deploying process at AT: a key, a signal by its name, or a kill of it and its guard."""

    kind: str
    what: str = ""


@dataclass(frozen=True)
class Case:
    name: str
    expected: str  # in words, for the table
    exit_code: int
    reason: str = ""
    does: Disturb | Act | None = None
    robot: tuple[str, ...] = ("--posture", "lying", "--no-sport")
    policy: str | None = None  # instead of the one under test
    impossible: bool = False  # a script that no Go2 can play
    soft_within: float | None = None  # s after AT until no joint is held
    upright: bool = True  # until it lies down
    never_stiff: bool = False
    robot_brakes: bool | None = None  # by itself because no command comes, or because a command says so

    @property
    def controlled(self) -> bool:
        """Whether it has to stand and lie down on its own legs."""
        return self.expected == COMES_DOWN


CALM = Case("nothing wrong", GOES_ON, PLAYED)

CASES: tuple[Case, ...] = (
    Case("nothing wrong, sport service active", "lays the robot down, releases it, plays the script", PLAYED, robot=()),
    Case("pose stream lost for 0.1 s", GOES_ON, PLAYED, does=Disturb("pose_off", True, 0.1)),
    Case("pose stream lost for 0.5 s", COMES_DOWN, STOPPED, "pose stream lost", Disturb("pose_off", True, 0.5)),
    Case("pose stream lost for good", COMES_DOWN, STOPPED, "pose stream lost", Disturb("pose_off", True)),
    Case(
        "low state lost",
        DAMPS,
        STOPPED,
        "low state lost",
        Disturb("states_off", True),
        soft_within=0.3,
    ),
    Case("20% of all packets lost", GOES_ON, PLAYED, robot=("--posture", "lying", "--no-sport", "--loss", "0.2")),
    Case("latency spike of 50 ms", GOES_ON, PLAYED, does=Disturb("delay", 0.05, 0.1)),
    Case("NaN in the pose for 0.1 s", "not believed, goes on", PLAYED, does=Disturb("pose_nan", True, 0.1)),
    Case("NaN in the pose for good", COMES_DOWN, STOPPED, "pose stream lost", Disturb("pose_nan", True)),
    Case("pose jumps by 1 m for 0.1 s", "not believed, goes on", PLAYED, does=Disturb("pose_shift", 1.0, 0.1)),
    Case("pose jumps by 1 m for good", COMES_DOWN, STOPPED, "pose stream lost", Disturb("pose_shift", 1.0)),
    Case("policy slower than its step", COMES_DOWN, STOPPED, "policy too late", policy="STUB-SLOW"),
    Case(
        "process killed with -9",
        "its guard brakes the robot",
        KILLED,
        does=Act("kill", "deploy"),
        soft_within=0.2,
        robot_brakes=False,
    ),
    Case(
        "process and guard killed with -9",
        "the simulated robot brakes by itself",
        KILLED,
        does=Act("kill", "both"),
        soft_within=0.3,
        robot_brakes=True,
    ),
    Case("script with impossible timing", "refused, no motor moves", REFUSED, impossible=True, never_stiff=True),
    Case(
        "robot upside down at the start",
        "refused, damping, no motor moves",
        STOPPED,
        "tilted too far",
        robot=("--posture", "upside-down", "--no-sport"),
        upright=False,
        never_stiff=True,
    ),
    Case("battery at 5%", COMES_DOWN, STOPPED, "battery low", Disturb("battery", 5.0)),
    Case("motor at 100 degrees", COMES_DOWN, STOPPED, "motor too hot", Disturb("motor_temperature", 100.0)),
    Case("emergency key", DAMPS, STOPPED, "emergency stop", Act("key", " "), soft_within=0.2),
    Case("remote's B button", DAMPS, STOPPED, "emergency stop", Disturb("button", "B", 0.2), soft_within=0.2),
    Case("Ctrl-C (SIGINT)", DAMPS, STOPPED, "emergency stop", Act("signal", "SIGINT"), soft_within=0.2),
    Case("SIGTERM", DAMPS, STOPPED, "emergency stop", Act("signal", "SIGTERM"), soft_within=0.2),
)
