"""Scripts to files and back; and each kind of mistake is found, in its place, with what is allowed, all of them at once."""

import copy
import json
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystride.keyframes.document import MOST_SHOWN, ScriptError
from keystride.keyframes.feasibility import script_warnings
from keystride.keyframes.files import (
    format_script,
    load_script,
    parse_script,
    save_script,
    script_data,
    script_schema,
    validate_script,
)
from keystride.keyframes.postures import named_postures
from keystride.keyframes.script import MAX_KEYFRAMES, Keyframe, Script
from keystride.robot.go2 import GO2

POSTURES = named_postures(GO2)

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = Path(__file__).parents[2] / "docs"
SOUND: dict[str, Any] = {
    "version": 1,
    "angles": "degrees",
    "keyframes": [
        {"time": 1.0, "position": [1.0, 0.0, 0.3], "yaw": 10.0, "label": "one"},
        {"time": 2.0, "position": [1.0, 0.0], "relative": True, "posture": "sit"},
        {"time": 3.0, "roll": 1.0, "pitch": 2.0, "posture": {"FL_hip_joint": 3.0}},
    ],
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=13) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def test_examples_have_names(tmp_path: Path):
    assert load_script("walk") == load_script(EXAMPLES / "walk.yaml")
    with pytest.raises(FileNotFoundError, match="no such file; the examples are course, hello, jump") as caught:
        load_script("nope")
    assert caught.value.filename == "nope"
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        load_script(tmp_path / "nope.yaml")


@given(script=...)
@settings(max_examples=30)
def test_yaml_and_back(script: Script):
    assert parse_script(format_script(script)) == script


@given(script=...)
@settings(max_examples=30)
def test_json_and_back(script: Script):
    assert parse_script(format_script(script, json=True), json=True) == script


@given(script=...)
@settings(max_examples=30)
def test_json_is_read_as_yaml_too(script: Script):
    assert parse_script(format_script(script, json=True)) == script


@pytest.mark.parametrize(
    "label", ["yes", "1e3", "0x10", "1:30", "null", "~", "- a", "a: b", "#", "'", '"', "é 犬", " a ", ""]
)
def test_labels_that_look_like_something_else_stay_text(label: str):
    script = Script(keyframes=(Keyframe(time=1, yaw=0, label=label),))
    assert parse_script(format_script(script)) == script


@given(content=st.binary(max_size=200), as_json=st.booleans())
def test_random_bytes_are_a_script_error(content: bytes, as_json: bool):
    with pytest.raises(ScriptError):
        parse_script(content, json=as_json)


@given(text=st.text(max_size=200), as_json=st.booleans())
def test_random_text_is_a_script_error(text: str, as_json: bool):
    with pytest.raises(ScriptError):
        parse_script(text, json=as_json)


@given(script=..., at=st.integers(0, 10_000), junk=st.binary(min_size=1, max_size=4))
@settings(max_examples=30)
def test_a_damaged_file_is_a_script_or_a_script_error(script: Script, at: int, junk: bytes):
    content = format_script(script).encode()
    at %= len(content)
    with suppress(ScriptError):
        assert isinstance(parse_script(content[:at] + junk + content[at + len(junk) :]), Script)


@pytest.mark.parametrize("name", ["script.yaml", "script.json", "SCRIPT.JSON"])
def test_save_and_load(tmp_path: Path, name: str):
    script = Script(keyframes=(Keyframe(time=1, position=(1, 2), posture="sit"),))
    save_script(script, tmp_path / name)
    assert load_script(tmp_path / name) == script
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_is_absent_is_not_written():
    script = Script(keyframes=(Keyframe(time=1, yaw=0.0),))
    assert script_data(script) == {"version": 1, "keyframes": [{"time": 1.0, "yaw": 0.0}]}


def test_an_error_names_the_file(tmp_path: Path):
    path = tmp_path / "bad.yaml"
    path.write_text("version: 1\nkeyframes: 3\n")
    with pytest.raises(ScriptError, match=r"bad\.yaml:2: keyframes: 3 is not a list"):
        load_script(path)


def test_the_schema_lists_what_editors_should_offer():
    schema = json.loads(json.dumps(script_schema()))
    fields = schema["$defs"]["Keyframe"]["properties"]
    name, angles, joints = fields["posture"]["anyOf"][0]["oneOf"]
    assert schema["required"] == ["version", "keyframes"]
    assert schema["additionalProperties"] is False
    assert name["enum"] == list(POSTURES)
    assert (angles["minItems"], angles["maxItems"]) == (12, 12)
    assert joints["propertyNames"]["enum"] == list(GO2.joint_names)
    assert (fields["position"]["anyOf"][0]["minItems"], fields["position"]["anyOf"][0]["maxItems"]) == (2, 3)


@pytest.mark.parametrize("name", ["walk", "turn", "slow_turn", "jump", "paw_up", "course", "stage"])
def test_the_examples_are_sound_and_within_reach(name: str):
    assert script_warnings(load_script(EXAMPLES / f"{name}.yaml"), GO2) == []


@pytest.mark.parametrize(
    ("name", "second"),
    [("walk", (75, (2.0, 0.0, 0.32))), ("turn", (75, (1.5, 1.0, 0.32))), ("slow_turn", (100, (1.5, 1.0, 0.32)))],
)
def test_the_anticipation_scenarios_are_those_of_the_paper(name: str, second: tuple[int, tuple[float, ...]]):
    script = load_script(EXAMPLES / f"{name}.yaml")
    assert [(keyframe.step, keyframe.position) for keyframe in script.keyframes] == [(50, (1.0, 0.0, 0.32)), second]


def test_the_course_has_eleven_keyframes_of_several_kinds():
    keyframes = load_script(EXAMPLES / "course.yaml").keyframes
    assert len(keyframes) == 11
    assert len({tuple(frozenset(script_data(Script(keyframes=(one,)))["keyframes"][0])) for one in keyframes}) > 4


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / "keyframes.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_what_the_manual_shows_is_sound_and_within_reach(text: str):
    assert script_warnings(parse_script(text), GO2) == []


def test_the_manual_lists_every_posture():
    assert {name for name in POSTURES if f"`{name}`" in (DOCS / "keyframes.md").read_text()} == set(POSTURES)


def test_the_json_of_the_manual_is_sound():
    (text,) = blocks("json")
    assert parse_script(text, json=True).keyframes[0].label == "ahead"


def test_the_python_of_the_manual_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (text,) = blocks("python")
    found: dict[str, Any] = {}
    exec(text, found)
    assert found["active"].step.shape == (4096, 5)
    assert len(load_script(tmp_path / "both.json").keyframes) == 3


def mistakes(data: Any) -> list[str]:
    with pytest.raises(ScriptError) as caught:
        validate_script(data, GO2)
    return [str(problem) for problem in caught.value.problems]


def keyframe(**fields: Any) -> dict[str, Any]:
    return {"version": 1, "keyframes": [{"time": 1.0, "yaw": 0.0, **fields}]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tiem": 1}, "keyframe 1, tiem: unknown field; allowed: time, position,"),
        ({"time": "1"}, "keyframe 1, time: '1' is not a number; allowed: seconds, 0 to 3600"),
        ({"time": True}, "keyframe 1, time: true is not a number"),
        ({"time": -1}, "keyframe 1, time: -1 is out of range; allowed: seconds, 0 to 3600"),
        ({"time": 10**400}, "keyframe 1, time: a huge number is "),
        ({"yaw": float("nan")}, "keyframe 1, yaw: nan is not a finite number"),
        ({"yaw": float("inf")}, "keyframe 1, yaw: inf is not a finite number"),
        ({"yaw": 361}, "keyframe 1, yaw: 361 is beyond its limit; allowed: -360.0 to 360.0 degrees"),
        ({"pitch": 91}, "keyframe 1, pitch: 91 is beyond its limit; allowed: -90.0 to 90.0 degrees"),
        ({"position": [1]}, "keyframe 1, position: a list of 1 is too short; allowed: [x, y] or [x, y, z]"),
        ({"position": [1, 2, 3, 4]}, "keyframe 1, position: a list of 4 is too long; allowed: [x, y] or [x, y, z]"),
        ({"position": [1, "a"]}, "keyframe 1, position[1]: 'a' is not a number"),
        ({"position": [1, 2e3]}, "keyframe 1, position[1]: 2000 is out of range"),
        ({"position": "here"}, "keyframe 1, position: 'here' is not a list"),
        ({"relative": 1, "position": [0, 0]}, "keyframe 1, relative: 1 is neither true nor false"),
        ({"relative": True}, "keyframe 1: is relative but has no position"),
        ({"yaw": None}, "keyframe 1: asks for nothing; needs one or more of position,"),
        ({"posture": "sti"}, "keyframe 1, posture: 'sti' is not known; allowed: 12 angles, a mapping"),
        ({"posture": 3}, "keyframe 1, posture: 3 is not a posture; allowed: 12 angles"),
        ({"posture": [0] * 11}, "keyframe 1, posture: a list of 11 is too short; allowed: 12 angles"),
        ({"posture": [0, 0, -60] * 3 + [0, 61, "x"]}, "keyframe 1, posture[11]: 'x' is not a number"),
        ({"posture": [0, 0, -60] * 3 + [61, 0, -60]}, "keyframe 1, posture[9]: 61 is beyond its limit; allowed: -60.0"),
        ({"posture": {"FL_hip": 1}}, "keyframe 1, posture.FL_hip: 'FL_hip' is not known; allowed: FL_hip_joint,"),
        ({"posture": {"FL_hip_joint": "a"}}, "keyframe 1, posture.FL_hip_joint: 'a' is not a number"),
        ({"posture": {"FL_hip_joint": 61}}, "keyframe 1, posture.FL_hip_joint: 61 is beyond its limit"),
        ({"posture": {}}, "keyframe 1, posture: a mapping is too short; allowed: 12 angles"),
        ({"label": 3}, "keyframe 1, label: 3 is not text"),
        ({"label": "x" * 81}, "keyframe 1, label: 'xxx"),
        ({"label": "a\x1b[31m"}, "keyframe 1, label: holds control characters"),
    ],
)
def test_a_mistake_in_a_keyframe(fields: dict[str, Any], message: str):
    (found,) = mistakes(keyframe(**fields))
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "nothing is not a mapping; allowed: a mapping with version, angles, stage, keyframes"),
        ([], "a list of 0 is not a mapping"),
        ({**SOUND, "version": 3}, "version: 3 is out of range; allowed: 1 or 2"),
        ({**SOUND, "version": 0}, "version: 0 is out of range; allowed: 1 or 2"),
        ({**SOUND, "version": True}, "version: true is not a version; allowed: 1"),
        ({"keyframes": SOUND["keyframes"]}, "version: is missing; allowed: 1"),
        ({"version": 1}, "keyframes: is missing; allowed: a list of 1 to"),
        ({**SOUND, "angles": "grad"}, "angles: 'grad' is not known; allowed: degrees or radians"),
        ({**SOUND, "keyframe": []}, "keyframe: unknown field; allowed: version, angles, stage, keyframes"),
        ({**SOUND, "keyframes": []}, "keyframes: a list of 0 is too short"),
        ({**SOUND, "keyframes": {}}, "keyframes: a mapping is not a list"),
        ({**SOUND, "keyframes": [3]}, "keyframe 1: 3 is not a mapping; allowed: a mapping with time,"),
        ({**SOUND, "keyframes": [None] * (MAX_KEYFRAMES + 1)}, f"keyframes: a list of {MAX_KEYFRAMES + 1} is too long"),
    ],
)
def test_a_mistake_in_the_header(data: Any, message: str):
    (found,) = mistakes(data)
    assert found.startswith(message)


SQUARE = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ([], "stage: a list of 0 is not a mapping; allowed: a mapping with floor, obstacles, audience"),
        ({}, "stage: is empty; needs one or more of floor, obstacles, audience"),
        ({"flor": SQUARE}, "stage.flor: unknown field; allowed: floor, obstacles, audience"),
        ({"floor": SQUARE[:2]}, "stage.floor: a list of 2 is too short; allowed: 3 to 32 corners [x, y] in metres"),
        ({"floor": SQUARE * 9}, "stage.floor: a list of 36 is too long; allowed: 3 to 32 corners"),
        ({"floor": "here"}, "stage.floor: 'here' is not a list"),
        ({"floor": [*SQUARE[:3], [1]]}, "stage.floor[3]: a list of 1 is too short"),
        ({"floor": [*SQUARE[:3], [1, "a"]]}, "stage.floor[3][1]: 'a' is not a number"),
        ({"floor": [*SQUARE[:3], [1, float("nan")]]}, "stage.floor[3][1]: nan is not a finite number"),
        ({"floor": [*SQUARE[:3], [1, 2e3]]}, "stage.floor[3][1]: 2000 is out of range"),
        ({"floor": [SQUARE[i] for i in (0, 2, 1, 3)]}, "stage.floor: edges 1 and 3 meet; allowed: an outline that"),
        ({"floor": [SQUARE[i] for i in (0, 0, 1, 2)]}, "stage.floor: edges 2 and 4 meet"),
        ({"floor": [[0, 0], [1, 1], [2, 2]]}, "stage.floor: has no area"),
        ({"obstacles": [{"corners": SQUARE}] * 33}, "stage.obstacles: a list of 33 is too long; allowed: a list of at"),
        ({"obstacles": [3]}, "obstacle 1: 3 is not a mapping; allowed: a mapping with label, center, radius, corners"),
        (
            {"obstacles": [{"label": "box"}]},
            "obstacle 1: is not a shape; allowed: either center and radius, or corners",
        ),
        ({"obstacles": [{"center": [0, 0]}]}, "obstacle 1: is not a shape"),
        ({"obstacles": [{"center": [0, 0], "radius": 1, "corners": SQUARE}]}, "obstacle 1: is not a shape"),
        ({"obstacles": [{"center": [0, 0], "radius": 0}]}, "obstacle 1, radius: 0 is out of range; allowed: metres,"),
        ({"obstacles": [{"center": [0], "radius": 1}]}, "obstacle 1, center: a list of 1 is too short"),
        ({"obstacles": [{"corners": SQUARE, "label": "\x1b"}]}, "obstacle 1, label: holds control characters"),
        ({"obstacles": [{"corners": SQUARE, "hight": 1}]}, "obstacle 1, hight: unknown field; allowed: label, center"),
        ({"audience": [[0, 0]]}, "stage.audience: a list of 1 is too short; allowed: two points [x, y] in metres"),
        ({"audience": [[0, 0], [0, 0]]}, "stage.audience: has no length; allowed: two points that differ"),
    ],
)
def test_a_mistake_in_the_stage(stage: Any, message: str):
    (found,) = mistakes({**SOUND, "version": 2, "stage": stage})
    assert found.startswith(message)


def test_a_stage_needs_the_version_that_knows_it():
    assert mistakes({**SOUND, "stage": {"floor": SQUARE}}) == ["stage: needs version 2"]
    assert mistakes({**SOUND, "stage": {"floor": SQUARE[:2]}})[1:] == ["stage: needs version 2"]


def test_every_mistake_of_a_stage_is_told_with_its_line():
    text = "version: 2\nstage:\n  floor: [[0, 0]]\n  obstacles:\n    - radius: -1\n      center: 3\n    - {}\nkeyframes: []\n"
    with pytest.raises(ScriptError) as caught:
        parse_script(text)
    found = [(problem.line, str(problem).split(":")[0]) for problem in caught.value.problems]
    assert found == [
        (3, "stage.floor"), (5, "obstacle 1, radius"), (6, "obstacle 1, center"), (7, "obstacle 2"), (8, "keyframes")
    ]  # fmt: skip


def test_times_must_increase_by_a_control_step():
    data = {"version": 1, "keyframes": [{"time": time, "yaw": 0} for time in (1.0, 1.0, 0.5, 0.505)]}
    assert mistakes(data) == [
        "keyframe 2, time: 1 is not later than the keyframe before; allowed: more than 1 s",
        "keyframe 3, time: 0.5 is not later than the keyframe before; allowed: more than 1 s",
        "keyframe 4, time: 0.505 falls on the same control step as the keyframe before (0.5 s); "
        "allowed: 0.02 s apart or more",
    ]


def test_radians_by_the_header_change_the_limits():
    data = {"version": 1, "angles": "radians", "keyframes": [{"time": 1, "yaw": 6.2, "posture": {"FL_hip_joint": 1.1}}]}
    assert mistakes(data) == [
        "keyframe 1, posture.FL_hip_joint: 1.1 is beyond its limit; allowed: -1.0472 to 1.0472 radians"
    ]


def test_all_mistakes_are_told_at_once_with_their_lines():
    text = """version: 3
keyframes:
  - time: 1
    yaw: .nan
    speed: 2
  - time: 0.5
    posture:
      FL_hip_joint: 90
    posture: sit
"""
    with pytest.raises(ScriptError) as caught:
        parse_script(text, robot=GO2)
    found = [(problem.line, problem.place[-1]) for problem in caught.value.problems]
    assert found == [(1, "version"), (4, "yaw"), (5, "speed"), (6, "time"), (8, "FL_hip_joint"), (9, "posture")]
    assert caught.value.lines()[1].startswith("script:4: keyframe 1, yaw: nan is not a finite number; allowed: ")


def test_joint_limits_are_checked_with_a_robot_only(tmp_path: Path):
    path = tmp_path / "folded.yaml"
    path.write_text("version: 1\nkeyframes:\n  - time: 1\n    posture:\n      FL_calf_joint: -170\n")
    script = load_script(path)
    longer = tuple(replace(leg, lower=(*leg.lower[:2], -3.0)) for leg in GO2.legs)
    assert load_script(path, replace(GO2, legs=longer)) == script
    for robot in (GO2, "go2"):
        with pytest.raises(ScriptError, match=r"folded\.yaml:5: .*FL_calf_joint: -170 is beyond its limit"):
            load_script(path, robot)


def test_a_flood_of_mistakes_is_cut_short():
    with pytest.raises(ScriptError) as caught:
        validate_script({"version": 1, "keyframes": [None] * 100})
    assert len(caught.value.lines()) == MOST_SHOWN + 1
    assert caught.value.lines()[-1] == f"script: and {100 - MOST_SHOWN} more"


def test_the_sound_script_is_sound():
    assert len(validate_script(SOUND).keyframes) == 3


@given(data=VALUES)
def test_any_data_is_a_script_or_a_script_error(data: Any):
    with pytest.raises(ScriptError):
        validate_script(data)


@given(value=VALUES, row=st.integers(0, 2), field=st.sampled_from(sorted({k for f in SOUND["keyframes"] for k in f})))
def test_any_value_in_any_field_is_a_script_or_a_script_error(value: Any, row: int, field: str):
    data = copy.deepcopy(SOUND)
    data["keyframes"][row][field] = value
    with suppress(ScriptError):
        assert isinstance(validate_script(data), Script)
