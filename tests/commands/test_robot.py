import json

import pytest

from keystride.commands.main import main
from keystride.robot.go2 import GO2


def test_robot_prints_its_figures_as_json(capsys: pytest.CaptureFixture[str]):
    assert main(["robot", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["mass"] == pytest.approx(15.206, abs=1e-3)
    assert [joint["name"] for joint in figures["joints"]] == list(GO2.joint_names)


def test_robot_prints_a_table_with_every_joint(capsys: pytest.CaptureFixture[str]):
    assert main(["robot"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in GO2.joint_names)
