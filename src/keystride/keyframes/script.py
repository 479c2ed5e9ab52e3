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

from keystride.keyframes.goals import COMPONENTS
from keystride.keyframes.limits import angle_unit, beyond_limits, control_step, out_of_order
from keystride.keyframes.postures import POSTURES, named_postures
from keystride.keyframes.problems import Problem
from keystride.robot.description import Floats, Robot
from keystride.robot.go2 import GO2

MAX_SECONDS = 3600.0
MAX_METRES = 1000.0
MAX_KEYFRAMES = 1000
MAX_LABEL = 80

Unit = Literal["degrees", "radians"]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _kind(posture: Any) -> str | None:
    kinds = {str: "name", list: "angles", tuple: "angles", dict: "joints"}
    return kinds.get(type(posture))


Metres = Annotated[float, Field(ge=-MAX_METRES, le=MAX_METRES)]
Position = Annotated[tuple[Metres, ...], Field(min_length=2, max_length=3, strict=False), BeforeValidator(_plain)]
Angle = Annotated[float, BeforeValidator(_plain)]
if TYPE_CHECKING:  # the names are data, and a type checker cannot run it
    PostureName = JointName = str
else:
    PostureName = Literal[tuple(POSTURES)]
    JointName = Literal[GO2.joint_names]
Angles = Annotated[tuple[float, ...], Field(min_length=12, max_length=12, strict=False)]
PostureField = Annotated[
    Annotated[PostureName, Tag("name")]
    | Annotated[Angles, Tag("angles")]
    | Annotated[dict[JointName, float], Field(min_length=1), Tag("joints")],
    Discriminator(_kind),
    BeforeValidator(_plain),
]


class Keyframe(BaseModel):
    """A moment, and whatever the robot should have reached by then: any of position, roll, pitch, yaw, posture."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    time: Annotated[float, BeforeValidator(_plain)] = Field(
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
    label: str | None = Field(default=None, max_length=MAX_LABEL, description="A word for the person.")

    @property
    def step(self) -> int:
        """The control step at which it is due."""
        return control_step(self.time)

    @field_validator("label")
    @classmethod
    def _printable(cls, label: str | None) -> str | None:
        if label is not None and not label.isprintable():
            raise PydanticCustomError("label", "holds control characters; allowed: printable text in one line")
        return label

    @model_validator(mode="after")
    def _asks_for_something(self) -> "Keyframe":
        if all(getattr(self, component) is None for component in COMPONENTS):
            raise PydanticCustomError("nothing", f"asks for nothing; needs one or more of {', '.join(COMPONENTS)}")
        if self.relative and self.position is None:
            raise PydanticCustomError("relative", "is relative but has no position")
        return self


class Script(BaseModel):
    """Keyframes in the order of their times, and the unit of their angles."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    version: int = Field(default=1, ge=1, le=1, json_schema_extra={"const": 1})
    angles: Unit = Field(default="degrees", description="The unit of roll, pitch, yaw and of posture angles.")
    keyframes: Annotated[tuple[Keyframe, ...], Field(min_length=1, max_length=MAX_KEYFRAMES, strict=False)]

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
        wrong += map(_found, [*out_of_order(fields), *(beyond_limits(fields, unit) if unit else ())])
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, wrong)
        return keyframes


def posture_angles(posture: Any, unit: str, robot: Robot = GO2) -> Floats:
    """Return the joint angles (12,) rad of a keyframe's posture; joints that a mapping leaves out stay as in the stance."""
    if isinstance(posture, str):
        return named_postures(robot)[posture].joints
    if isinstance(posture, dict):
        angles = robot.stance.copy()
        for name, angle in posture.items():
            angles[robot.joint_names.index(name)] = angle * angle_unit(unit)
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
    """A mistake from pydantic's own list, so that it can be raised again beside others."""
    error = PydanticCustomError(cast(Any, entry["type"]), "{message}", {"message": entry["msg"]})
    return InitErrorDetails(type=error, loc=entry["loc"], input=entry["input"])
