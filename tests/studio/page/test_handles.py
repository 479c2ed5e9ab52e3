"""What is seen on top is what is grabbed, and a drag does what it looks like."""

import numpy as np
import pytest

from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.document import posing
from keystride.studio.document.draft import from_script
from keystride.studio.document.keyframe_poses import Ghost, ghosts
from keystride.studio.page.handles import ARROW_TO, FEET, RING_RADIUS, Grab, Ray, pick

DRAFT = from_script(Script(keyframes=(Keyframe(time=1.0, position=(0.5, 0.2, 0.333), yaw=30.0),)), GO2)
EYE = np.array([-1.5, -2.6, 1.5])


@pytest.fixture
def ghost() -> Ghost:
    return ghosts(DRAFT)[1]


def towards(point: np.ndarray) -> Ray:
    return Ray.through(EYE, point)


def test_every_handle_is_picked_where_it_is(ghost: Ghost):
    for name, foot in zip(FEET, posing.ghost_feet(ghost), strict=True):
        assert pick(ghost, towards(foot)) == name
    assert pick(ghost, towards(ghost.position + np.array([0.0, 0.0, ARROW_TO]))) == "height"
    assert pick(ghost, towards(ghost.position + np.array([-RING_RADIUS, 0.0, 0.0]))) == "yaw"
    assert pick(ghost, towards(ghost.position)) is None


def test_a_ghost_follows_the_pointer_over_the_ground(ghost: Ghost):
    grab = Grab("ground", 1, ghost, ghost.position, towards(ghost.position))
    move = grab.move(towards(ghost.position + np.array([0.4, -0.3, 0.0])), ghost.position)
    assert move.ground == pytest.approx([0.9, -0.1])


@pytest.mark.parametrize("height", [0.2, 0.333, 0.5])
def test_seen_from_the_side_a_ghost_moves_along_the_picture(ghost: Ghost, height: float):
    eye = np.array([0.5, -3.0, height])
    aim = ghost.position + np.array([0.4, 0.0, 0.05])
    grab = Grab("ground", 1, ghost, ghost.position, Ray.through(eye, ghost.position))
    assert grab.move(Ray.through(eye, aim), aim).ground == pytest.approx([0.9, 0.2])


def test_the_ring_turns_and_the_arrow_lifts(ghost: Ghost):
    at = ghost.position + RING_RADIUS * np.array([1.0, 0.0, 0.0])
    turned = ghost.position + RING_RADIUS * np.array([0.0, 1.0, 0.0])
    yaw = Grab("yaw", 1, ghost, at, towards(at)).move(towards(turned), turned).yaw
    assert yaw == pytest.approx(np.radians(120.0))
    tip = ghost.position + np.array([0.0, 0.0, ARROW_TO])
    lifted = Grab("height", 1, ghost, tip, towards(tip)).move(towards(tip + np.array([0.0, 0.0, 0.1])), tip)
    assert lifted.height == pytest.approx(0.433)


def test_a_foot_goes_where_it_is_dragged_and_the_body_stays(ghost: Ghost):
    foot = posing.ghost_feet(ghost)[0]
    target = foot + np.array([0.05, 0.02, 0.06])
    move = Grab(FEET[0], 1, ghost, foot, towards(foot)).move(towards(target), target)
    assert move.foot is not None
    posed = ghosts(posing.set_foot(DRAFT, 1, *move.foot))[1]
    feet, before = posing.ghost_feet(posed), posing.ghost_feet(ghost)
    np.testing.assert_allclose(feet[0], target, atol=2e-3)
    np.testing.assert_allclose(feet[1:], before[1:], atol=2e-3)
    np.testing.assert_allclose(posed.position, ghost.position, atol=1e-3)


def test_a_foot_out_of_reach_ends_at_a_limit_and_never_under_the_ground(ghost: Ghost):
    foot = posing.ghost_feet(ghost)[2]
    move = Grab(FEET[2], 1, ghost, foot, towards(foot)).move(towards(foot), foot + np.array([0.0, 0.0, -1.0]))
    assert move.foot is not None
    assert move.foot[1][2] == GO2.foot_radius
    posed = ghosts(posing.set_foot(DRAFT, 1, 2, foot + np.array([0.0, 0.0, 0.6])))[1]
    assert posing.legs_at_limits(posed)[2]
    assert not any(posing.legs_at_limits(ghost))


def test_a_mirrored_foot_moves_its_partner(ghost: Ghost):
    level = from_script(Script(keyframes=(Keyframe(time=1.0, position=(0.0, 0.0, 0.333), yaw=0.0),)), GO2)
    foot = posing.ghost_feet(ghosts(level)[1])[0]
    posed = ghosts(posing.set_foot(level, 1, 0, foot + np.array([0.04, 0.03, 0.05]), mirrored=True))[1]
    feet = posing.ghost_feet(posed)
    other = int(GO2.mirror_order[0]) // 3
    np.testing.assert_allclose(feet[other], feet[0] * [1.0, -1.0, 1.0], atol=2e-3)


def test_planted_feet_stay_while_the_body_moves(ghost: Ghost):
    moved = posing.with_planted_feet(DRAFT, 1, lambda draft: posing.set_height(draft, 1, 0.28))
    moved = posing.with_planted_feet(moved, 1, lambda draft: posing.set_angle(draft, 1, "pitch", 0.1))
    posed = ghosts(moved)[1]
    np.testing.assert_allclose(posing.ghost_feet(posed), posing.ghost_feet(ghost), atol=4e-3)
    assert posed.position[2] == pytest.approx(0.28)
