"""Text of any kind becomes plain data with lines, or one kind of error."""

import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystride.keyframes.document import (
    MAX_DEPTH,
    MAX_SCRIPT_BYTES,
    ParsedText,
    ScriptError,
    decode,
    parse_script_json,
    parse_script_yaml,
)

BOMB = "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*{'a' if not i else f'b{i - 1}'}, *a]\n" for i in range(40))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1", 1),
        ("-.5", -0.5),
        ("+1.", 1.0),
        ("010", 10),
        ("true", True),
        ("yes", "yes"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("~", None),
        ("'1'", "1"),
        (".inf", math.inf),
        ("9" * 400, math.inf),
    ],
)
def test_scalars_are_read_as_in_the_core_schema(text: str, value: object):
    found = parse_script_yaml(f"a: {text}").data["a"]
    assert found == value
    assert type(found) is type(value)


def test_lines_are_known_for_keys_and_items():
    document = parse_script_yaml("a: 1\nb:\n  - x\n  - c: 2\n")
    assert [document.line(place) for place in [("a",), ("b", 0), ("b", 1, "c"), ("b", 1, "unheard")]] == [1, 3, 4, 4]


def test_json_has_the_same_lines():
    assert parse_script_json('{\n"a": 1,\n"b": [\n{"c": 2}]}').line(("b", 0, "c")) == 4


@pytest.mark.parametrize("read", [parse_script_yaml, parse_script_json])
def test_a_key_that_stands_twice_is_reported_and_the_first_kept(read):
    document = read('{"a": 1,\n "a": 2}')
    assert document.data == {"a": 1}
    assert [(problem.place, problem.message) for problem in document.problems] == [(("a",), "is given twice")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "alias"),
        ("a: &a\n  b: *a", "alias"),
        ("[" * 100_000, "nested more than"),
        ("a: " + "{b: " * 50, "nested more than"),
        ("- " * 5000, "nested more than"),
        ("!!python/object/apply:os.system [ls]", "tag"),
        ("a: !!float 3", "tag"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("? [a]\n: b", "key"),
        ("a: [1, 2", "is not YAML"),
        ("a: 'b", "is not YAML"),
        ("\ta: 1", "is not YAML"),
        ("# nothing but a comment", "empty"),
        ('"\\U0011ffff"', "is not YAML"),
    ],
)
def test_yaml_that_is_refused(text: str, words: str):
    with pytest.raises(ScriptError, match=words):
        parse_script_yaml(text)


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, "[" * 500 + "]" * 500, "[\t" * 500 + "]" * 500])
def test_json_too_deep_is_refused(text: str):
    with pytest.raises(ScriptError, match="nested more than"):
        parse_script_json(text)


@pytest.mark.parametrize("text", ["{", '{"a": 1,}', "{'a': 1}", "1 2", '{"a": 1}}'])
def test_json_that_is_refused(text: str):
    with pytest.raises(ScriptError, match="is not JSON"):
        parse_script_json(text)


def test_json_is_not_read_by_the_rules_of_yaml():
    assert parse_script_json('{"a": "\\ud83d\\ude00", "b": 1e3}').data == {"a": "😀", "b": 1000.0}


def test_yaml_as_deep_as_allowed_is_read():
    assert parse_script_yaml("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH).data is not None


def test_the_line_of_a_syntax_error_is_told():
    with pytest.raises(ScriptError) as caught:
        parse_script_yaml("a: 1\nb: [\nc: }")
    assert caught.value.problems[0].line == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"a\0b", "binary"),
        (b"#" * (MAX_SCRIPT_BYTES + 1), "larger"),
    ],
)
def test_bytes_that_are_refused(content: bytes, words: str):
    with pytest.raises(ScriptError, match=words):
        decode(content)


def test_a_byte_order_mark_is_no_part_of_the_text():
    assert decode("version: 1".encode("utf-8-sig")) == "version: 1"


@given(text=st.text(alphabet="{}[]:,-&*!|>'\"%#\n \t?@`01.eE~a\\", max_size=60))
def test_whatever_looks_like_yaml_is_data_or_a_script_error(text: str):
    for read in (parse_script_yaml, parse_script_json):
        with suppress(ScriptError):
            assert isinstance(read(text), ParsedText)
