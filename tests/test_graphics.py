"""The graphics library that MuJoCo is made to use."""

import os
import subprocess
import sys

import pytest

from keystride.graphics import GRAPHICS_LIBRARIES, choose_graphics


@pytest.fixture
def no_screen(monkeypatch: pytest.MonkeyPatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_screen")
def test_a_choice_of_the_users_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    choose_graphics()
    assert os.environ["MUJOCO_GL"] == "glfw"


@pytest.mark.usefixtures("no_screen")
def test_with_a_screen_nothing_is_chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DISPLAY", ":0")
    choose_graphics()
    assert "MUJOCO_GL" not in os.environ


@pytest.mark.usefixtures("no_screen")
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


@pytest.mark.usefixtures("no_screen")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux draws off screen by another library")
def test_the_python_api_chooses_before_mujoco_is_imported():
    code = "import os, sys, keystride; keystride.Recording; print('mujoco' in sys.modules, os.environ.get('MUJOCO_GL'))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    choose_graphics()
    assert shown.stdout == f"True {os.environ.get('MUJOCO_GL')}\n"
