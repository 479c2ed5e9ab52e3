"""Thumbnails show the pose, and names are text, never HTML."""

import re

import numpy as np
import pytest

from keystride.keyframes.postures import named_postures
from keystride.robot.go2 import GO2
from keystride.studio.page.meshes import Figure
from keystride.studio.page.pose_pictures import GROUND, PICTURE_HEIGHT, PICTURE_WIDTH, picture, pose_buttons

POSTURES = named_postures(GO2)


@pytest.mark.parametrize("name", POSTURES)
def test_the_robot_stands_inside_its_picture(name: str):
    corners = np.array(re.findall(r"(-?[\d.]+),(-?[\d.]+)", picture(POSTURES[name], Figure(GO2))), dtype=float) / 100
    assert corners[:, 0].min() > 0
    assert corners[:, 0].max() < PICTURE_WIDTH
    assert corners[:, 1].min() > 0
    assert corners[:, 1].max() < PICTURE_HEIGHT


def test_a_posture_that_is_lower_is_drawn_lower():
    def top(name: str) -> float:
        found = re.findall(r",(-?[\d.]+)", picture(POSTURES[name], Figure(GO2)))
        return GROUND - min(map(float, found)) / 100

    assert top("lie") < top("crouch") < top("stand") < top("tall")


def test_only_own_poses_can_be_deleted_and_names_are_escaped():
    html = pose_buttons({"sit": POSTURES["sit"], '"><b>': POSTURES["bow"]}, ['"><b>'], Figure(GO2))
    assert html.count("data-pose=") == 2
    assert html.count("data-forget=") == 1
    assert "<b>" not in html
    assert 'data-forget="&quot;&gt;&lt;b&gt;"' in html
