import os
import sys

import pytest

from keystride.commands.main import GRAPHICS_LIBRARIES, choose_graphics


@pytest.fixture(autouse=True)
def _no_screen(monkeypatch: pytest.MonkeyPatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)


def test_a_choice_of_the_users_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    choose_graphics()
    assert os.environ["MUJOCO_GL"] == "glfw"


def test_with_a_screen_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DISPLAY", ":0")
    choose_graphics()
    assert "MUJOCO_GL" not in os.environ


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux draws off screen by another library")
def test_without_a_screen_a_library_that_is_there_is_chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(GRAPHICS_LIBRARIES, "egl", "libc.so.6")  # loads everywhere
    choose_graphics()
    assert os.environ["MUJOCO_GL"] == "egl"
    monkeypatch.delenv("MUJOCO_GL")
    monkeypatch.setitem(GRAPHICS_LIBRARIES, "egl", "libabsent.so.1")
    monkeypatch.setitem(GRAPHICS_LIBRARIES, "osmesa", "libc.so.6")
    choose_graphics()
    assert os.environ["MUJOCO_GL"] == "osmesa"
    monkeypatch.delenv("MUJOCO_GL")
