"""Rendering without a screen."""

import ctypes
import os
import sys

LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}  # what MuJoCo can draw with, the faster one first


def choose_graphics() -> None:
    """On Linux without a display, let MuJoCo draw off screen. To be called before mujoco is imported: it looks once."""
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform != "linux" or screen or "MUJOCO_GL" in os.environ:
        return
    for name, library in LIBRARIES.items():
        if _loads(library):
            os.environ["MUJOCO_GL"] = name
            return


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
