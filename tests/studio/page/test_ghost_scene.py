"""Captions over ghosts."""

from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.document.draft import from_script
from keystride.studio.document.keyframe_poses import ghosts
from keystride.studio.page.ghost_scene import together

SCRIPT = Script(
    keyframes=(
        Keyframe(time=1.0, position=(1.0, 0.0, 0.32)),
        Keyframe(time=2.0, position=(2.0, 0.0)),
        Keyframe(time=3.0, position=(1.1, 0.1, 0.3)),
        Keyframe(time=4.0, position=(1.0, 0.0, 0.9)),
    )
)


def test_ghosts_in_one_place_share_a_caption_and_a_leap_above_it_has_its_own():
    assert together(ghosts(from_script(SCRIPT, GO2))) == {1: [1, 3], 2: [2], 4: [4]}
