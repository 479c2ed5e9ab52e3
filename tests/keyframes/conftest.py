"""Hypothesis learns to invent scripts: `@given(script=...)` on an argument annotated with Script."""

from math import degrees
from typing import Any, get_args

from hypothesis import strategies as st

from keystride.keyframes.postures import named_postures
from keystride.keyframes.script import TILT_LIMITS, Keyframe, Script, Unit
from keystride.keyframes.stage import Obstacle, Stage
from keystride.robot.go2 import GO2

POSTURES = named_postures(GO2)

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
def rectangles(draw: st.DrawFn) -> tuple[tuple[float, float], ...]:
    x, y, width, height = (draw(bounded(lower, 50.0)) for lower in (-50.0, -50.0, 0.1, 0.1))
    return ((x, y), (x + width, y), (x + width, y + height), (x, y + height))


def stages() -> st.SearchStrategy[Stage]:
    metres = bounded(-50.0, 50.0)
    points = st.tuples(metres, metres)
    labels = st.none() | st.text(max_size=20).filter(str.isprintable)
    circles = st.builds(Obstacle, center=points, radius=bounded(0.01, 9.0), label=labels)
    boxes = st.builds(Obstacle, corners=rectangles(), label=labels)
    lines = st.tuples(points, points).filter(lambda ends: ends[0] != ends[1])
    obstacles = st.lists(circles | boxes, max_size=3).map(tuple)
    return st.builds(Stage, floor=rectangles(), obstacles=obstacles, audience=st.none() | lines)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    steps = sorted(draw(st.sets(st.integers(1, 2000), min_size=1, max_size=4)))
    unit = draw(st.sampled_from(get_args(Unit)))
    scale = degrees(1.0) if unit == "degrees" else 1.0
    found = tuple(draw(keyframes(step, scale)) for step in steps)
    return draw(
        st.sampled_from((1, 2)).map(lambda version: Script(version=version, angles=unit, keyframes=found))
        | stages().map(lambda stage: Script(angles=unit, stage=stage, keyframes=found))
    )


st.register_type_strategy(Script, scripts())
