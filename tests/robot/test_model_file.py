"""A robot's model that asks for too much, or for something else, is refused before MuJoCo builds it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keystride.errors import FileError
from keystride.robot.catalogue import RobotError, load_robot, robot_text
from keystride.robot.go2 import GO2
from keystride.robot.model import load_model, visual_shapes, write_png

MODEL = GO2.model_path.read_text()
TETRAHEDRON = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def load(folder: Path, text: str) -> None:
    path = folder / "model" / "robot.xml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    load_model(replace(GO2, model_path=path))


def inside(place: str, addition: str) -> str:
    assert place in MODEL
    return MODEL.replace(place, f"{place}{addition}", 1)


@pytest.mark.parametrize(
    ("place", "addition", "message"),
    [
        ("<worldbody>", '<replicate count="1000000000"><geom size="1"/></replicate>', "44: <replicate> is not allowed"),
        (
            "<worldbody>",
            '<composite type="cable" count="9 9 9"/>',
            "<composite> is not allowed .* allowed: asset, body",
        ),
        ("<asset>", '<hfield name="h" nrow="9" ncol="9" size="1 1 1 1"/>', "17: <hfield> is not allowed"),
        ("<asset>", '<texture name="t" type="2d" builtin="flat" width="4097" height="1"/>', "allowed: 0 to 4096"),
        (
            "<asset>",
            '<texture name="t" builtin="flat" width="4096" height="4096"/>',
            "17: textures too large; allowed: 32",
        ),
        (
            "<asset>",
            '<texture name="t" builtin="flat" width="nan" height="1"/>',
            "width nan in <texture>; allowed: 0 to",
        ),
        ("<asset>", '<mesh name="m" builtin="supertorus" params="1 1 1 1"/>', "builtin in <mesh> is not allowed"),
        (
            "<asset>",
            '<mesh name="m" file="../m.obj"/>',
            "17: '../m.obj' is outside the model's folder; allowed: files within",
        ),
        ("<asset>", '<mesh name="m" file="/dev/zero.stl"/>', "is outside the model's folder"),
        ("<asset>", '<mesh name="m" file="link.stl"/>', "'link.stl' is outside the model's folder"),
        ("<asset>", '<mesh name="m" file="pipe.stl"/>', "17: 'pipe.stl': not a regular file"),
        ("<asset>", '<mesh name="m" file="large.stl"/>', "'large.stl': too large; allowed: at most 32 MiB"),
        (
            "<asset>",
            '<mesh name="m" file="half.stl"/><mesh name="n" file="half.stl"/>',
            "meshes and textures too large",
        ),
        ("<asset>", '<mesh name="m" file="m.sh"/>', "'m.sh' is not a file for <mesh>; allowed: .stl, .obj, .msh"),
        ("<asset>", '<texture name="t" type="2d" file="large.png"/>', "textures too large"),
        ("<worldbody>", "<body>" * 64 + "</body>" * 64, "44: nested too deep; allowed: 64 levels"),
        ("<worldbody>", '<geom size="1"/>' * 5_000, "44: too large; allowed: 5000 elements"),
        ("<worldbody>", '<geom size="1" user="1 2 3"/>', "user in <geom> is not allowed"),
        ("<worldbody>", '<include file="../secret.xml"/>', "'../secret.xml' is outside the model's folder"),
        ("<worldbody>", '<include file="robot.xml"/>', "an included file includes another; allowed: one level"),
        ("<worldbody>", '<include file="nowhere.xml"/>', "44: there is no file 'nowhere.xml' in "),
        ('euler="0 1.5708 0"', "<", "not XML: not well-formed"),
        ("<option ", 'sdf_iterations="1001" ', "sdf_iterations 1001 in <option>; allowed: 0 to 1000"),
    ],
)
def test_a_model_that_asks_for_too_much(place: str, addition: str, message: str, tmp_path: Path):
    import os

    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.stl").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.stl")
    for name, size in (("large.stl", 33 << 20), ("half.stl", 17 << 20)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
    write_png(folder / "large.png", np.zeros((1, 1 << 25), np.uint8)) if "large.png" in addition else None
    with pytest.raises(FileError, match=rf"robot\.xml:\d*.*{message}" if not message[0].isdigit() else f":{message}"):
        load(tmp_path, inside(place, addition))


def test_a_document_type_is_refused_before_its_entities_unfold(tmp_path: Path):
    with pytest.raises(FileError, match=r"robot\.xml:1: a document type is not allowed"):
        load(tmp_path, '<!DOCTYPE a [<!ENTITY b "c">]><mujoco>&b;</mujoco>')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('timestep="0.005"', 'timestep="1e-9"', r"the timestep is 1e-09 s; allowed: 0\.005 s"),
        (
            '<freejoint name="root"/>',
            "",
            r"the joints are 'FL_hip_joint', .*; allowed: a free joint, then the hinges FL",
        ),
        ('<body name="base"', '<body name="trunk"', "the first body is not 'base'"),
        ("<worldbody>", '<worldbody><body name="box"><geom size="1"/></body>', "the first body is not 'base'"),
        (
            "</body>\n  </worldbody>",
            '<body><geom size="1"/></body></body></worldbody>',
            "14 bodies; allowed: 13, the base",
        ),
        (
            'type="sphere" size="0.047"',
            'type="sphere" size="-1"',
            "MuJoCo cannot compile it: .*size 0 must be positive",
        ),
        ("</worldbody>", "</worldbody><sensor/>", "<sensor> is not allowed"),
    ],
)
def test_a_model_that_keystride_cannot_simulate(old: str, new: str, message: str, tmp_path: Path):
    assert old in MODEL
    with pytest.raises(FileError, match=rf"robot\.xml.*{message}"):
        load(tmp_path, MODEL.replace(old, new, 1))


def test_links_that_lead_to_themselves_are_named(tmp_path: Path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "legs.xml").symlink_to("legs.xml")
    with pytest.raises(OSError, match="Too many levels of symbolic links") as caught:
        load(tmp_path, inside("</worldbody>", '<include file="legs.xml"/>'))
    assert str(caught.value.filename).endswith("legs.xml")
    (tmp_path / "robot.xml").symlink_to("robot.xml")
    (tmp_path / "robot.yaml").write_text(robot_text(replace(GO2, model_path=Path("robot.xml"))))
    with pytest.raises(RobotError, match=r"there is no file .*robot\.xml"):
        load_robot(tmp_path / "robot.yaml")


def test_a_model_with_a_mesh_a_texture_and_an_included_file_is_read(tmp_path: Path):
    folder = tmp_path / "model"
    (folder / "assets").mkdir(parents=True)
    (folder / "assets" / "hat.obj").write_text(TETRAHEDRON)
    write_png(folder / "assets" / "skin.png", np.zeros((8, 8, 3), np.uint8))
    begin, end = MODEL.index('<body name="FL_hip"'), MODEL.index("</body>\n  </worldbody>")
    (folder / "legs.xml").write_text(f"<mujocoinclude>{MODEL[begin:end]}</mujocoinclude>")
    hat = '<geom type="mesh" mesh="hat" material="skin" group="2" mass="0"/><include file="legs.xml"/>'
    assets = '<mesh name="hat" file="hat.obj"/><texture name="skin" type="2d" file="skin.png"/>'
    text = (MODEL[:begin] + hat + MODEL[end:]).replace(
        "<asset>", f'<asset>{assets}<material name="skin" texture="skin"/>'
    )
    load(tmp_path, text.replace("<compiler ", '<compiler assetdir="assets" '))
    model = load_model(replace(GO2, model_path=folder / "robot.xml"))
    assert model.nmesh == 1
    assert len(visual_shapes(model)) == len(visual_shapes(load_model(GO2)))  # pages draw primitives alone


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("speed: [30.1", "speed: [0.0", r"legs\.0\.speed: 0 is out of range; allowed: 0\.1 to 1000"),
        ("torque: [23.7", "torque: [-1.0", r"legs\.0\.torque: -1 is out of range"),
        (
            "full_torque_speed: 0.45",
            "full_torque_speed: 1.0",
            r"full_torque_speed: 1 is out of range; allowed: 0 to 0\.99",
        ),
        ("foot_radius: 0.022", "foot_radius: .nan", "foot_radius: nan is out of range"),
        ("name: FL", "name: FR", "legs: FR, FR, RL, RR; allowed: FL, FR, RL, RR"),
        ("stance: [0.0,", "stance: [3.0,", r"legs\.0\.stance: .*; allowed: between lower and upper"),
    ],
)
def test_a_description_that_no_motor_can_be_made_of(old: str, new: str, message: str, tmp_path: Path):
    path, text = tmp_path / "robot.yaml", robot_text(GO2)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(RobotError, match=rf"robot\.yaml: {message}"):
        load_robot(path)
