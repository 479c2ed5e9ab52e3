"""Choose how MuJoCo renders off screen."""

import ctypes
import os
import sys

GRAPHICS_LIBRARIES = {  # for off-screen rendering, the faster one first
    "egl": "libEGL.so.1",
    "osmesa": "libOSMesa.so.8",
}


def choose_graphics() -> None:
    """Let MuJoCo render off screen on Linux without a display. Must be called before mujoco is imported."""
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform != "linux" or screen or "MUJOCO_GL" in os.environ:
        return
    for name, library in GRAPHICS_LIBRARIES.items():
        if _loads(library):
            os.environ["MUJOCO_GL"] = name
            return


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
