"""Scripts to files and back."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystride.keyframes.feasibility import warnings
from keystride.keyframes.files import format_script, load_script, parse_script, save_script, script_data, script_schema
from keystride.keyframes.postures import named_postures
from keystride.keyframes.problems import ScriptError
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2

POSTURES = named_postures(GO2)

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = Path(__file__).parents[2] / "docs"


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
    assert warnings(load_script(EXAMPLES / f"{name}.yaml"), GO2) == []


@pytest.mark.parametrize(
    ("name", "second"),
    [("walk", (75, (2.0, 0.0, 0.32))), ("turn", (75, (1.5, 1.0, 0.32))), ("slow_turn", (100, (1.5, 1.0, 0.32)))],
)
def test_the_anticipation_scenarios_are_those_of_the_paper(name: str, second: tuple[int, tuple[float, ...]]):
    script = load_script(EXAMPLES / f"{name}.yaml")
    assert [(keyframe.step, keyframe.position) for keyframe in script.keyframes] == [(50, (1.0, 0.0, 0.32)), second]


def test_the_course_has_ten_keyframes_of_several_kinds():
    keyframes = load_script(EXAMPLES / "course.yaml").keyframes
    assert len(keyframes) == 10
    assert len({tuple(frozenset(script_data(Script(keyframes=(one,)))["keyframes"][0])) for one in keyframes}) > 4


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / "keyframes.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_what_the_manual_shows_is_sound_and_within_reach(text: str):
    assert warnings(parse_script(text), GO2) == []


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
