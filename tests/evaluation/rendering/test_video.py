from pathlib import Path

import numpy as np
import pytest

from keystride.evaluation.recording import Recording, play_script
from keystride.evaluation.rendering.video import draw_frames, opacity, shown, write_video
from keystride.keyframes.script import Keyframe, Script
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2

SIZE = (128, 96)


@pytest.fixture(scope="module")
def recording(standing: Policy) -> Recording:
    script = Script(keyframes=(Keyframe(time=0.2, position=(0.3, 0.0, 0.32)),))
    return play_script(standing, GO2, script, title="short", policy="standing")


@pytest.fixture(scope="module")
def frames(recording: Recording) -> list[np.ndarray]:
    try:
        return list(draw_frames(recording, SIZE))
    except RuntimeError as error:
        pytest.skip(f"nothing to draw with: {error}")


def test_every_second_control_step_is_a_frame(recording: Recording, frames: list[np.ndarray]) -> None:
    assert len(frames) == -(-len(recording.poses) // 2)
    assert all(frame.shape == (96, 128, 3) for frame in frames)


def test_the_ghost_of_a_missed_keyframe_shows_red_while_it_is_near(frames: list[np.ndarray]) -> None:
    def redness(frame: np.ndarray) -> int:
        red, green, blue = frame.astype(int).transpose(2, 0, 1)
        return int((red - np.maximum(green, blue) > 40).sum())

    assert redness(frames[5]) > 100
    assert redness(frames[-1]) == 0  # a second later it is left out


def test_a_ghost_is_clearest_when_it_is_due() -> None:
    assert opacity(0.0) > opacity(0.3) > opacity(2.0) > 0
    assert opacity(0.0) > opacity(-0.3)


def test_the_next_two_are_shown_and_one_just_past() -> None:
    assert shown(np.array([-2.0, -0.1, 0.5, 1.5, 2.5])) == [1, 2, 3]
    assert shown(np.array([-2.0, -1.0])) == []
    assert shown(np.array([0.0])) == [0]  # due at this very moment


@pytest.mark.parametrize(("name", "at", "magic"), [("film.mp4", 4, b"ftyp"), ("film.gif", 0, b"GIF89a")])
def test_a_film_is_written_whole(
    name: str, at: int, magic: bytes, recording: Recording, frames: list[np.ndarray], tmp_path: Path
) -> None:
    pytest.importorskip("imageio_ffmpeg")
    write_video(recording, tmp_path / name, SIZE)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes()[at:].startswith(magic)
