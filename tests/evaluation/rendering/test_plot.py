from pathlib import Path

import pytest

from keystride.evaluation.recording import Recording, play_script
from keystride.evaluation.rendering.plot import draw_recording
from keystride.evaluation.rendering.plot_style import as_svg, save_figure
from keystride.keyframes.script import Keyframe, Script
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


@pytest.fixture(scope="module")
def recording(standing: Policy) -> Recording:
    keyframes = (Keyframe(time=0.5, position=(0.3, 0.1), label="a $x^{ label"), Keyframe(time=1.0, yaw=180.0))
    return play_script(standing, GO2, Script(keyframes=keyframes), title="plot", policy="standing")


def test_a_picture_is_written_whole_in_the_kind_that_its_name_says(recording: Recording, tmp_path: Path) -> None:
    heads = {"a.png": b"\x89PNG", "a.svg": b"<?xml", "a.pdf": b"%PDF"}
    figure = draw_recording(recording)
    for name, head in heads.items():
        save_figure(figure, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(head)
    assert {path.name for path in tmp_path.iterdir()} == heads.keys()


def test_another_kind_is_refused_before_anything_is_written(recording: Recording, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf"):
        save_figure(draw_recording(recording), tmp_path / "a.docx")
    assert not list(tmp_path.iterdir())


def test_the_same_episode_gives_the_same_picture(recording: Recording) -> None:
    assert as_svg(draw_recording(recording)) == as_svg(draw_recording(recording))


def test_every_part_of_the_picture_has_its_panel(recording: Recording) -> None:
    titles = [axes.get_title(loc="left") for axes in draw_recording(recording).axes]
    assert len(titles) == 8
    assert "height of the base, m" in titles
    assert "rear right, degrees" in titles
