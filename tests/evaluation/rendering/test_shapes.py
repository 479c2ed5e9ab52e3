import mujoco

from keystride.evaluation.rendering.shapes import robot_looks
from keystride.robot.go2 import GO2
from keystride.robot.model import load_model


def test_every_visible_shape_is_there_and_hangs_on_a_body() -> None:
    looks, model = robot_looks(GO2), load_model(GO2)
    assert len(looks["bodies"]) == 13
    assert len(looks["shapes"]) == int((model.geom_group == 2).sum())
    assert {shape["body"] for shape in looks["shapes"]} == set(range(13))


def test_parents_come_before_children_and_every_joint_once() -> None:
    bodies = robot_looks(GO2)["bodies"]
    assert all(body["parent"] < i for i, body in enumerate(bodies))
    assert sorted(body["joint"] for body in bodies[1:]) == list(range(12))


def test_feet_are_as_large_as_they_are() -> None:
    shapes = robot_looks(GO2)["shapes"]
    feet = [shape for shape in shapes if shape["kind"] == "sphere"]
    assert {shape["size"][0] for shape in feet} == {GO2.foot_radius}
    assert mujoco.mjtGeom.mjGEOM_MESH not in load_model(GO2).geom_type  # the page draws primitives alone
