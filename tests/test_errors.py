from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from keystride.errors import EXTRAS, USER_MISTAKE, UserError, explain, report


def test_a_users_mistake_is_one_line_and_exit_code_two(capsys: pytest.CaptureFixture[str]):
    assert report(UserError("keyframes.yaml: times must increase")) == USER_MISTAKE == 2
    captured = capsys.readouterr()
    assert captured.err == "error: keyframes.yaml: times must increase\n"
    assert captured.out == ""


def test_a_missing_file_is_named():
    with pytest.raises(OSError, match="nowhere") as caught:
        Path("/nowhere/script.yaml").read_text()
    assert explain(caught.value) == "/nowhere/script.yaml: No such file or directory"


@pytest.mark.parametrize(("module", "extra"), EXTRAS.items())
def test_a_missing_extra_is_named_with_what_installs_it(module: str, extra: str):
    message = explain(ModuleNotFoundError(f"No module named '{module}'", name=f"{module}.inner"))
    assert message is not None
    assert f"keystride[{extra}]" in message


def test_every_invalid_field_is_reported():
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(dict[str, int]).validate_python({"time": "soon", "count": "many"})
    message = explain(caught.value)
    assert message is not None
    assert "time: " in message
    assert "count: " in message


def test_a_fault_of_our_own_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        report(ZeroDivisionError("ours"))
    with pytest.raises(ModuleNotFoundError):
        report(ModuleNotFoundError("No module named 'keystride.nothing'", name="keystride.nothing"))


def test_the_traceback_is_there_for_who_asks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KEYSTRIDE_TRACEBACK", "1")
    with pytest.raises(UserError):
        report(UserError("bad script"))


def test_a_reader_that_went_away_is_no_error(monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setattr(sys, "stdout", sys.stdout)
    assert report(BrokenPipeError()) == 0


def test_a_name_of_a_file_does_not_control_the_terminal(capsys: pytest.CaptureFixture[str]):
    report(UserError("a\x1b[31m\udcff.yaml:1: not a mapping\nb.yaml:2: too late"))
    assert capsys.readouterr().err == "error: a?[31m?.yaml:1: not a mapping\nb.yaml:2: too late\n"
