"""Plane geometry by hand arithmetic, and warnings where a path leaves the stage."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystride.keyframes.edit import concatenate, in_unit, mirror, shift, with_stage
from keystride.keyframes.feasibility import body_radius, script_warnings
from keystride.keyframes.files import format_script, load_script, parse_script, save_script, script_data
from keystride.keyframes.goals import empty_goals
from keystride.keyframes.inbetween.planner import WaypointPlan
from keystride.keyframes.script import Keyframe, Script
from keystride.keyframes.stage import (
    MAX_CORNERS,
    MAX_OBSTACLES,
    Obstacle,
    Stage,
    area,
    circle,
    crossing_edges,
    distances,
    inside,
    outline,
)
from keystride.robot.description import Floats
from keystride.robot.go2 import GO2

SQUARE = ((-1.0, -1.0), (3.0, -1.0), (3.0, 1.0), (-1.0, 1.0))
ELL = ((0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 2.0))  # not convex
METRES = st.floats(-9.0, 9.0)


def walk(*places: tuple[float, float], **stage: object) -> Script:
    keyframes = tuple(Keyframe(time=3.0 * n, position=place) for n, place in enumerate(places, start=1))
    return Script(stage=Stage.model_validate(stage), keyframes=keyframes)


def messages(script: Script, plan: WaypointPlan | None = None) -> list[tuple[int, str]]:
    return [(warning.row, warning.message) for warning in script_warnings(script, plan=plan, robot=GO2)]


def segment(*numbers: float) -> Floats:
    return np.array(numbers).reshape(1, 2, 2)


def test_area_and_inside_of_an_ell():
    assert area(ELL) == pytest.approx(3.0)
    points = np.array([[0.5, 0.5], [1.5, 0.5], [0.5, 1.5], [1.5, 1.5], [-0.5, 0.5], [2.5, 0.5]])
    assert inside(points, ELL).tolist() == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("leg", "edge", "apart"),
    [
        ((0, 0, 2, 0), (1, -1, 1, 1), 0.0),  # they cross
        ((0, 0, 2, 0), (1, 0.5, 1, 1), 0.5),  # an end over the middle
        ((0, 0, 2, 0), (3, 1, 4, 1), sqrt(2)),  # end to end
        ((0, 0, 2, 0), (0, 3, 2, 3), 3.0),  # parallel
        ((1, 1, 1, 1), (0, 0, 2, 0), 1.0),  # a robot that stays
        ((0, 0, 2, 0), (1, 0, 5, 0), 0.0),  # one on the other
    ],
)
def test_distances_of_segments(leg: tuple[float, ...], edge: tuple[float, ...], apart: float):
    assert distances(segment(*leg), segment(*edge))[0, 0] == pytest.approx(apart)


@given(numbers=st.lists(METRES, min_size=8, max_size=8))
def test_distance_is_the_same_both_ways_and_the_least_over_points(numbers: list[float]):
    leg, edge = segment(*numbers[:4]), segment(*numbers[4:])
    apart = distances(leg, edge)[0, 0]
    assert apart == pytest.approx(distances(edge, leg)[0, 0], abs=1e-9)
    share = np.linspace(0.0, 1.0, 21)[:, None]
    on_leg, on_edge = (line[0, 0] + share * (line[0, 1] - line[0, 0]) for line in (leg, edge))
    assert apart <= np.linalg.norm(on_leg[:, None] - on_edge[None], axis=-1).min() + 1e-9


def test_crossing_edges_of_a_bow_tie_and_of_none():
    assert crossing_edges(SQUARE) is None
    assert crossing_edges(ELL) is None
    assert crossing_edges((SQUARE[0], SQUARE[2], SQUARE[1], SQUARE[3])) == (0, 2)


def test_the_polygon_of_a_circle_is_around_it():
    corners = circle((1.0, 2.0), 0.5)
    apart = distances(segment(1.0, 2.0, 1.0, 2.0), outline(corners))
    np.testing.assert_allclose(apart, 0.5)


def test_a_path_in_the_middle_of_the_floor_has_no_warning():
    assert messages(walk((1.0, 0.0), (2.0, 0.0), floor=SQUARE, audience=SQUARE[:2])) == []


def test_a_path_that_leaves_the_floor_is_told_at_the_keyframe_it_leads_to():
    assert messages(walk((1.0, 0.0), (1.0, 1.5), (1.0, 0.0), floor=SQUARE)) == [
        (1, "the path to it leaves the floor"),
        (2, "the path to it leaves the floor"),
    ]


def test_a_path_over_a_corner_that_is_not_floor_leaves_it_though_both_keyframes_are_inside():
    ell = tuple((x - 0.5, y - 0.5) for x, y in np.multiply(ELL, 2.0).tolist())
    assert inside(np.array([[0.0, 3.0], [3.0, 0.0]]), ell).all()
    assert (1, "the path to it leaves the floor") in messages(walk((0.0, 3.0), (3.0, 0.0), floor=ell))


def test_the_robot_s_size_counts():
    near = 1.0 - body_radius(GO2)
    assert messages(walk((2.0, 0.0), (2.0, near - 0.01), floor=SQUARE)) == []
    assert messages(walk((2.0, 0.0), (2.0, near + 0.01), floor=SQUARE)) == [
        (1, "the path to it is 0.37 m from the edge of the floor; the robot needs 0.38 m")
    ]


def test_obstacles_are_named_and_audience_is_kept_clear():
    pillar = {"center": (1.0, 0.0), "radius": 0.2, "label": "pillar"}
    box = {"corners": ((1.5, 0.5), (2.5, 0.5), (2.5, 1.0))}
    found = messages(walk((0.5, 0.0), (2.0, 0.0), obstacles=[pillar, box], audience=((2.3, -1.0), (2.3, 1.0))))
    assert found == [
        (0, "the path to it is 0.30 m from the pillar; the robot needs 0.38 m"),
        (1, "the path to it meets the pillar"),
        (1, "the path to it is 0.30 m from the audience's side; the robot needs 0.38 m"),
    ]  # obstacle 2 is 0.5 m away
    assert (0, "the path to it meets obstacle 1") in messages(walk((2.2, 0.8), obstacles=[box]))
    assert (0, "the path to it crosses the audience's side") in messages(
        walk((1.0, 0.0), audience=((0.5, 1), (0.5, -1)))
    )


def test_a_robot_that_starts_off_the_floor_is_told_though_it_goes_nowhere():
    outside = Script(stage=Stage(floor=((1, 1), (2, 1), (2, 2))), keyframes=(Keyframe(time=1, yaw=90),))
    assert messages(outside) == [(0, "the path to it leaves the floor")]


def test_waypoints_are_part_of_the_path():
    """The straight way is free, the one that is planned is not."""
    script = walk((2.0, 0.0), obstacles=[{"center": (1.0, 0.8), "radius": 0.3}])
    goals = empty_goals(1, 2)
    goals.step[:] = [[75, 150]]
    goals.presence[..., 0] = True
    path = np.array([[[1.0, 0.6, 0.0], [2.0, 0.0, 0.0]]])
    plan = WaypointPlan(goals, path, np.array([[True, False]]))
    assert messages(script) == []
    assert messages(script, plan) == [(0, "the path to it meets obstacle 1")]


def test_the_largest_stage_is_checked(tmp_path):
    """As much as a file may hold: it is bounded, so that a hostile one is too."""
    ring = circle((0.0, 0.0), 40.0)
    floor = tuple((40 * np.cos(a), 40 * np.sin(a)) for a in np.linspace(0, 2 * np.pi, MAX_CORNERS, endpoint=False))
    obstacles = tuple(
        Obstacle(corners=tuple(0.1 * np.array(floor) + [n % 8 - 4, n // 8 - 2])) for n in range(MAX_OBSTACLES)
    )
    places = [tuple(0.9 * ring[n % len(ring)]) for n in range(1, 100)]
    keyframes = tuple(Keyframe(time=3.0 * n, position=place) for n, place in enumerate(places, start=1))
    script = Script(stage=Stage(floor=floor, obstacles=obstacles), keyframes=keyframes)
    save_script(script, tmp_path / "large.yaml")
    assert load_script(tmp_path / "large.yaml") == script
    assert {row for row, _ in messages(script)} == set(range(99))


def test_a_script_without_a_stage_keeps_its_version():
    for version in (1, 2):
        text = f"version: {version}\nkeyframes:\n- time: 1.0\n  yaw: 5.0\n"
        assert format_script(parse_script(text)) == text
        assert script_data(shift(parse_script(text), 1.0))["version"] == version
        assert script_data(in_unit(parse_script(text), "radians"))["version"] == version


def test_a_stage_moves_a_script_to_the_version_that_knows_it_and_back_to_none():
    bare = Script(keyframes=(Keyframe(time=1, yaw=5),))
    staged = with_stage(bare, Stage(floor=SQUARE))
    assert (bare.version, staged.version, staged.keyframes) == (1, 2, bare.keyframes)
    assert staged == Script(stage=Stage(floor=SQUARE), keyframes=bare.keyframes)
    assert parse_script(format_script(staged)) == staged
    assert with_stage(staged, None) == bare.model_copy(update={"version": 2})
    assert with_stage(bare, None) == bare


@given(script=...)
@settings(max_examples=20)
def test_a_mirror_image_has_its_mirror_image_as_warnings(script: Script):
    """Of the stage alone: postures and turns are looked at elsewhere."""
    twice = mirror(mirror(script))
    assert twice.stage == script.stage
    assert [w for w in messages(mirror(script)) if "path" in w[1]] == [w for w in messages(script) if "path" in w[1]]


@given(first=..., second=...)
@settings(max_examples=10)
def test_the_stage_of_a_chain_is_the_first_one_s(first: Script, second: Script):
    both = concatenate(first, second, 1.0)
    assert (both.stage, both.version) == (first.stage, first.version)
