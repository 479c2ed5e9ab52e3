from dataclasses import replace
from pathlib import Path

import pytest

from keystride.robot.catalogue import RobotError, load_robot, robot_text
from keystride.robot.go2 import GO2


def test_a_robot_that_ships_is_found_by_its_name() -> None:
    assert load_robot("go2") is GO2


def test_a_description_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    heavier = replace(GO2, name="other", stiffness=50.0)
    (tmp_path / "other.yaml").write_text(robot_text(heavier))
    assert load_robot(tmp_path / "other.yaml") == replace(heavier, model_path=GO2.model_path.resolve())


def test_a_model_is_found_beside_its_description(tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text(GO2.model_path.read_text())
    text = robot_text(replace(GO2, model_path=Path("mine.xml")))
    (tmp_path / "mine.yaml").write_text(text)
    assert load_robot(tmp_path / "mine.yaml").model_path == (tmp_path / "mine.xml").resolve()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("foot_radius: 0.022", "foot_radius: wide", "foot_radius: input should be a valid number, .* found 'wide'"),
        ("name: unitree_go2", "name: [", "not valid YAML"),
        ("model_path: ", "model_path: /nowhere", "there is no file"),
    ],
)
def test_a_mistake_in_a_description_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(robot_text(GO2).replace(old, new))
    with pytest.raises(RobotError, match=message):
        load_robot(tmp_path / "bad.yaml")


def test_an_unknown_name_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(RobotError, match="choose from go2"):
        load_robot("dog")
