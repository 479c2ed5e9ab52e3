from pathlib import Path

import pytest

from keystride.commands.main import main
from keystride.robot.go2 import GO2
from keystride.robot.model import draw_robot

from .test_motion_import import write_standing


def can_draw() -> bool:
    try:
        draw_robot(GO2, GO2.stance, size=(32, 32))
    except Exception:  # whatever the graphics driver raises
        return False
    return True


def test_view_films_a_clip(tmp_path: Path):
    pytest.importorskip("imageio_ffmpeg", reason="the video extra is not installed")
    if not can_draw():
        pytest.skip("nothing to draw with")
    write_standing(tmp_path / "good.csv", frames=6)
    out = tmp_path / "library"
    assert main(["motion", "import", "--from", "csv", str(tmp_path), "--out", str(out)]) == 0
    film = tmp_path / "film.mp4"
    view = ["motion", "view", str(out / "good.npz"), "--out", str(film), "--size", "160", "96"]
    assert main(view) == 0
    assert film.stat().st_size > 500
    assert main(["motion", "view", str(tmp_path / "good.csv")]) == 2
