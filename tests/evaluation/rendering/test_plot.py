import pytest

from keystride.colours import BLUE
from keystride.evaluation.recording import Recording, play_script
from keystride.evaluation.rendering.plot import draw_panels, draw_recording
from keystride.keyframes.script import Keyframe, Script
from keystride.plotting import as_svg
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2


@pytest.fixture(scope="module")
def recording(standing: Policy) -> Recording:
    keyframes = (Keyframe(time=0.5, position=(0.3, 0.1), label="<b>a $x^{$ label"), Keyframe(time=1.0, yaw=300.0))
    return play_script(standing, GO2, Script(keyframes=keyframes), title="plot", policy="standing")


def test_the_same_episode_gives_the_same_picture(recording: Recording) -> None:
    assert as_svg(draw_recording(recording)) == as_svg(draw_recording(recording))


def test_every_part_of_the_picture_has_its_panel(recording: Recording) -> None:
    titles = [axes.get_title(loc="left") for axes in draw_recording(recording).axes]
    assert len(titles) == 8
    assert "height of the base, m" in titles
    assert "rear right, degrees" in titles


def test_a_turn_is_drawn_the_way_the_robot_went(recording: Recording) -> None:
    """300 degrees asked of a robot that stands at about 0 are drawn at -60."""
    yaw = next(figure.axes[0] for figure in draw_panels(recording) if "yaw" in figure.axes[0].get_title(loc="left"))
    _, met, missed = (list(line.get_ydata()) for line in yaw.lines)
    assert (met, missed) == ([], pytest.approx([-60.0]))


def test_labels_are_text_in_a_page(recording: Recording) -> None:
    drawing = as_svg(draw_panels(recording)[0], {BLUE: "var(--blue)"})
    assert "&lt;b&gt;a $x^{$ label" in drawing
    assert BLUE not in drawing
    assert "var(--blue)" in drawing
    assert "<style" not in drawing
