"""Hypothesis learns to invent scripts: `@given(script=...)` on an argument annotated with Script."""

from math import degrees
from typing import Any, get_args

from hypothesis import strategies as st

from keystride.keyframes.limits import TILT_LIMITS
from keystride.keyframes.postures import POSTURES
from keystride.keyframes.script import Keyframe, Script, Unit
from keystride.robot.go2 import GO2

LIMITS = list(zip(GO2.joint_names, GO2.lower.tolist(), GO2.upper.tolist(), strict=True))


def bounded(lower: float, upper: float) -> st.SearchStrategy[float]:
    return st.floats(lower, upper, allow_nan=False, allow_infinity=False)


def postures(scale: float) -> st.SearchStrategy[Any]:
    by_name = {name: bounded(lower * scale, upper * scale) for name, lower, upper in LIMITS}
    mappings = st.fixed_dictionaries({}, optional=by_name).filter(bool)
    return st.sampled_from(list(POSTURES)) | st.tuples(*by_name.values()) | mappings


@st.composite
def keyframes(draw: st.DrawFn, step: int, scale: float) -> Keyframe:
    metres = bounded(-50.0, 50.0)
    parts = {
        "position": st.tuples(metres, metres) | st.tuples(metres, metres, metres),
        **{name: bounded(-limit * scale, limit * scale) for name, limit in TILT_LIMITS.items()},
        "posture": postures(scale),
    }
    components = draw(st.fixed_dictionaries({}, optional=parts).filter(bool))
    label = draw(st.none() | st.text(max_size=20).filter(str.isprintable))
    relative = "position" in components and draw(st.booleans())
    return Keyframe(time=round(step * 0.02, 2), relative=relative, label=label, **components)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    steps = sorted(draw(st.sets(st.integers(1, 2000), min_size=1, max_size=4)))
    unit = draw(st.sampled_from(get_args(Unit)))
    scale = degrees(1.0) if unit == "degrees" else 1.0
    return Script(angles=unit, keyframes=tuple(draw(keyframes(step, scale)) for step in steps))


st.register_type_strategy(Script, scripts())
