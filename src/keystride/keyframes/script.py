"""Keyframes as a person writes them: the one schema of the YAML and JSON files, and what Python builds.

Values stay as written, in the unit of the script's header; `resolve.py` turns them into arrays in metres and radians.
"""

from collections.abc import Mapping
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

from keystride.keyframes.document import Problem
from keystride.keyframes.goals import COMPONENTS
from keystride.keyframes.limits import angle_unit, beyond_limits, control_step, out_of_order
from keystride.keyframes.postures import POSTURE_NAMES, named_postures
from keystride.keyframes.stage import Label, Metres, Stage, plain
from keystride.robot.catalogue import DEFAULT_ROBOT, load_robot
from keystride.robot.description import JOINT_NAMES, Floats, Robot

MAX_SECONDS = 3600.0
MAX_KEYFRAMES = 1000
STAGE_VERSION = 2  # the first one with a stage; a script without one stays in the version it was written in

Unit = Literal["degrees", "radians"]


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
    """A moment, and whatever the robot should have reached by then: any of position, roll, pitch, yaw, posture."""

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
    label: Label = Field(default=None, description="A word for the person.")

    @property
    def step(self) -> int:
        """The control step at which it is due."""
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
        """A script that is built with a stage has the version that knows one; in a file the version is written."""
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
        """Every mistake at once: those of each keyframe, and of all of them together."""
        rows = value if isinstance(value, list | tuple) else ()
        if len(rows) > MAX_KEYFRAMES:  # not worth the look at each
            raise PydanticCustomError("too_long", "more keyframes than allowed")
        keyframes, wrong = (), []
        try:
            keyframes = handler(value)
        except ValidationError as error:
            wrong = [_found_already(entry) for entry in error.errors(include_url=False)]
        fields = [_fields(keyframe) for keyframe in rows]
        unit = info.data.get("angles")  # absent when the header is wrong itself
        robot = info.context or load_robot(DEFAULT_ROBOT)
        wrong += map(_found, [*out_of_order(fields), *(beyond_limits(fields, unit, robot) if unit else ())])
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return keyframes


def posture_angles(posture: Any, unit: str, robot: Robot) -> Floats:
    """Return the joint angles (12,) rad of a keyframe's posture; joints that a mapping leaves out stay as in the stance."""
    if isinstance(posture, str):
        return named_postures(robot)[posture].joints
    if isinstance(posture, dict):
        angles = robot.stance.copy()
        for name, angle in posture.items():
            angles[JOINT_NAMES.index(name)] = angle * angle_unit(unit)
    else:
        angles = np.array(posture) * angle_unit(unit)
    return np.clip(angles, robot.lower, robot.upper)


def _fields(keyframe: Any) -> Mapping[str, Any]:
    if isinstance(keyframe, Keyframe):
        return keyframe.__dict__
    return keyframe if isinstance(keyframe, Mapping) else {}


def _found(problem: Problem) -> InitErrorDetails:
    error = PydanticCustomError("limit", "{message}", {"message": problem.message})
    return InitErrorDetails(type=error, loc=problem.place, input=None)


def _found_already(entry: ErrorDetails) -> InitErrorDetails:
    """Return a mistake from pydantic's own list, so that it can be raised again beside others."""
    error = PydanticCustomError(cast(Any, entry["type"]), "{message}", {"message": entry["msg"]})
    return InitErrorDetails(type=error, loc=entry["loc"], input=entry["input"])
