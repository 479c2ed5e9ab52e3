"""Keyframes and scripts as written: the schema of the YAML and JSON files, and the classes that Python code builds.

Values stay as written, in the unit of the script's header; `resolve.py` turns them into arrays in metres and radians.
A script by itself is checked only for what holds for any robot. Joint limits are checked where a robot is given.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import degrees, floor, pi, radians
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from keystride.keyframes.document import HUGE, FieldPath, Problem, ScriptError, shorten
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT
from keystride.keyframes.postures import POSTURE_NAMES, named_postures
from keystride.keyframes.stage import Label, Metres, Stage, plain
from keystride.robot.description import JOINT_NAMES, Floats, Robot

MAX_SECONDS = 3600.0
MAX_KEYFRAMES = 1000
STAGE_VERSION = 2  # the first version with a stage; a script without one keeps its version
TILT_LIMITS = {"roll": pi, "pitch": pi / 2, "yaw": 2 * pi}  # rad, either way
ANGLE_TOLERANCE = 1e-3  # rad: people round angles, so -156 degrees stands for the calf's limit

Unit = Literal["degrees", "radians"]
Raw = Mapping[str, Any]  # a keyframe by its fields, valid or not


def control_step(seconds: float) -> int:
    """Return the control step nearest to a time."""
    return floor(round(seconds / CONTROL_DT, 6) + 0.5)


def angle_unit(unit: str) -> float:
    """Return the size in radians of one unit of a script's angles."""
    return radians(1.0) if unit == "degrees" else 1.0


def _kind(posture: Any) -> str | None:
    kinds = {str: "name", list: "angles", tuple: "angles", dict: "joints"}
    return kinds.get(type(posture))


Position = Annotated[tuple[Metres, ...], Field(min_length=2, max_length=3, strict=False), BeforeValidator(plain)]
Angle = Annotated[float, BeforeValidator(plain)]
if TYPE_CHECKING:  # the names are data, and a type checker cannot run it
    PostureName = JointName = str
else:
    PostureName = Literal[POSTURE_NAMES]
    JointName = Literal[JOINT_NAMES]
Angles = Annotated[tuple[float, ...], Field(min_length=12, max_length=12, strict=False)]
PostureField = Annotated[
    Annotated[PostureName, Tag("name")]
    | Annotated[Angles, Tag("angles")]
    | Annotated[dict[JointName, float], Field(min_length=1), Tag("joints")],
    Discriminator(_kind),
    BeforeValidator(plain),
]


class Keyframe(BaseModel):
    """What the robot should have reached at a time: any of position, roll, pitch, yaw and posture."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    time: Annotated[float, BeforeValidator(plain)] = Field(
        ge=0.0, le=MAX_SECONDS, description="Seconds from the start; rounded to control steps of 20 ms."
    )
    position: Position | None = Field(
        default=None,
        description="[x, y] or [x, y, z] of the base in metres: forward and left of the start, above the ground.",
    )
    relative: bool = Field(
        default=False,
        description="x and y are an offset from the previous position, ahead and to the left of the previous yaw.",
    )
    roll: Angle | None = Field(default=None, description="Left side up is positive.")
    pitch: Angle | None = Field(default=None, description="Nose down is positive.")
    yaw: Angle | None = Field(default=None, description="To the left is positive, from the heading at the start.")
    posture: PostureField | None = Field(
        default=None,
        description="A named posture, 12 joint angles, or angles by joint name (the others as in the stance).",
    )
    label: Label = Field(default=None, description="A name to show to people.")

    @property
    def step(self) -> int:
        """Return the control step at which the keyframe is due."""
        return control_step(self.time)

    @model_validator(mode="after")
    def _asks_for_something(self) -> "Keyframe":
        if all(getattr(self, component) is None for component in COMPONENTS):
            raise PydanticCustomError("nothing", f"asks for nothing; needs one or more of {', '.join(COMPONENTS)}")
        if self.relative and self.position is None:
            raise PydanticCustomError("relative", "is relative but has no position")
        return self


class Script(BaseModel):
    """Keyframes in the order of their times, the unit of their angles, and the stage."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    version: int = Field(default=1, ge=1, le=STAGE_VERSION, json_schema_extra={"enum": [1, STAGE_VERSION]})
    angles: Unit = Field(default="degrees", description="The unit of roll, pitch, yaw and of posture angles.")
    stage: Stage | None = Field(default=None, description="Floor, obstacles and audience; needs version 2.")
    keyframes: Annotated[tuple[Keyframe, ...], Field(min_length=1, max_length=MAX_KEYFRAMES, strict=False)]

    @model_validator(mode="before")
    @classmethod
    def _with_version(cls, data: Any) -> Any:
        """Raise the version of a script built in code with a stage to the first that supports one; a file states its version."""
        if isinstance(data, dict) and "version" not in data and data.get("stage") is not None:
            return {"version": STAGE_VERSION, **data}
        return data

    @field_validator("stage")
    @classmethod
    def _is_known(cls, stage: Stage | None, info: ValidationInfo) -> Stage | None:
        if stage is not None and info.data.get("version", STAGE_VERSION) < STAGE_VERSION:
            raise PydanticCustomError("version", "needs version {version}", {"version": STAGE_VERSION})
        return stage

    @field_validator("keyframes", mode="wrap")
    @classmethod
    def _check(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> tuple[Keyframe, ...]:
        """Report every mistake at once: those of single keyframes, their order, tilts and, given a robot, its joint limits."""
        rows = value if isinstance(value, list | tuple) else ()
        if len(rows) > MAX_KEYFRAMES:  # too many to validate each
            raise PydanticCustomError("too_long", "more keyframes than allowed")
        keyframes, wrong = (), []
        try:
            keyframes = handler(value)
        except ValidationError as error:
            wrong = [_found_already(entry) for entry in error.errors(include_url=False)]
        fields = [_fields(keyframe) for keyframe in rows]
        unit = info.data.get("angles")  # absent if the header itself is invalid
        problems = [*_order_problems(fields)]
        if unit:
            problems += [
                *_tilt_problems(fields, unit),
                *(_joint_problems(fields, unit, info.context) if info.context else ()),
            ]
        wrong += map(_found, problems)
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return keyframes


def check_joint_limits(script: Script, robot: Robot) -> None:
    """Raise ScriptError, which lists every joint angle beyond the robot's limits."""
    fields = [_fields(keyframe) for keyframe in script.keyframes]
    problems = [
        Problem(("keyframes", *problem.place), problem.message)
        for problem in _joint_problems(fields, script.angles, robot)
    ]
    if problems:
        raise ScriptError(problems)


def posture_angles(posture: Any, unit: str, robot: Robot) -> Floats:
    """Return the joint angles (12,) in rad of a keyframe's posture, clipped to the limits.

    Joints that a mapping does not name have their angles in the stance.
    """
    if isinstance(posture, str):
        return named_postures(robot)[posture].joints
    if isinstance(posture, dict):
        angles = robot.stance.copy()
        for name, angle in posture.items():
            angles[JOINT_NAMES.index(name)] = angle * angle_unit(unit)
    else:
        angles = np.array(posture) * angle_unit(unit)
    return np.clip(angles, robot.lower, robot.upper)


def _order_problems(keyframes: Sequence[Raw]) -> Iterator[Problem]:
    timed = [(row, keyframe["time"]) for row, keyframe in enumerate(keyframes) if _is_number(keyframe.get("time"))]
    for (_, before), (row, after) in pairwise(timed):
        if after <= before:
            reason = f"{shorten(after)} is not later than the keyframe before; allowed: more than {shorten(before)} s"
            yield Problem((row, "time"), reason)
        elif control_step(after) == control_step(before):
            reason = f"{shorten(after)} falls on the same control step as the keyframe before ({shorten(before)} s)"
            yield Problem((row, "time"), f"{reason}; allowed: {CONTROL_DT:g} s apart or more")


def _tilt_problems(keyframes: Sequence[Raw], unit: str) -> Iterator[Problem]:
    for row, keyframe in enumerate(keyframes):
        for name, limit in TILT_LIMITS.items():
            yield from _angle_problem((row, name), keyframe.get(name), -limit, limit, unit)


def _joint_problems(keyframes: Sequence[Raw], unit: str, robot: Robot) -> Iterator[Problem]:
    for row, keyframe in enumerate(keyframes):
        for key, joint, angle in _joints(keyframe.get("posture")):
            lower, upper = float(robot.lower[joint]), float(robot.upper[joint])
            yield from _angle_problem((row, "posture", key), angle, lower, upper, unit)


def _angle_problem(place: FieldPath, angle: Any, lower: float, upper: float, unit: str) -> Iterator[Problem]:
    """Return what is wrong with a joint angle, if anything. Limits are in rad; values that are not numbers are reported elsewhere."""
    if _is_number(angle) and not lower - ANGLE_TOLERANCE <= angle * angle_unit(unit) <= upper + ANGLE_TOLERANCE:
        yield Problem(place, f"{shorten(angle)} is beyond its limit; allowed: {_span(lower, upper, unit)}")


def _span(lower: float, upper: float, unit: str) -> str:
    if unit == "degrees":
        return f"{degrees(lower):.1f} to {degrees(upper):.1f} degrees"
    return f"{lower:.4f} to {upper:.4f} radians"


def _joints(posture: Any) -> Iterator[tuple[str | int, int, Any]]:
    """Yield the key, the index of the joint and the angle for every angle of a posture."""
    if isinstance(posture, Mapping):
        for joint, name in enumerate(JOINT_NAMES):
            yield name, joint, posture.get(name)
    elif isinstance(posture, list | tuple) and len(posture) == len(JOINT_NAMES):
        for joint, angle in enumerate(posture):
            yield joint, joint, angle


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -HUGE < value < HUGE


def _fields(keyframe: Any) -> Raw:
    if isinstance(keyframe, Keyframe):
        return keyframe.__dict__
    return keyframe if isinstance(keyframe, Mapping) else {}


def _found(problem: Problem) -> InitErrorDetails:
    error = PydanticCustomError("limit", "{message}", {"message": problem.message})
    return InitErrorDetails(type=error, loc=problem.place, input=None)


def _found_already(entry: ErrorDetails) -> InitErrorDetails:
    """Return a mistake from pydantic's own list, so that it can be raised again together with others."""
    error = PydanticCustomError(cast(Any, entry["type"]), "{message}", {"message": entry["msg"]})
    return InitErrorDetails(type=error, loc=entry["loc"], input=entry["input"])
