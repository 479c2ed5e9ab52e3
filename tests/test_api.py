import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import keystride
from keystride.keyframes.document import ScriptError
from keystride.keyframes.files import example_scripts

NO_TORCH = """
import sys
import keystride
assert set(keystride.__all__) <= set(dir(keystride))
recording = keystride.play("walk", policy="go2-position")
assert recording.errors.shape[0] == len(recording.met)
assert recording.to_html().lower().startswith("<!doctype html>")
recording.plot()
keystride.load_script("course"), keystride.load_policy("go2-pose"), keystride.Robot, keystride.TrainingConfig
assert "torch" not in sys.modules, [name for name in sys.modules if name.startswith("torch")][:3]
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_keystride_imports_nothing_heavy() -> None:
    run("import sys, keystride; assert not {'numpy', 'mujoco', 'torch', 'pydantic'} & set(sys.modules)")


def test_everything_but_training_runs_without_torch() -> None:
    run(NO_TORCH)


def test_every_public_name_can_be_had() -> None:
    assert all(getattr(keystride, name) is not None for name in keystride.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        keystride.nothing  # noqa: B018  # type: ignore[attr-defined]


def test_a_script_plays_by_name_by_path_and_as_an_object(tmp_path: Path) -> None:
    policy = keystride.load_policy("go2-position")
    by_name = keystride.play("turn", policy)
    by_path = keystride.play(example_scripts()["turn"], policy)
    by_object = keystride.play(keystride.load_script("turn"), policy)
    np.testing.assert_array_equal(by_name.poses, by_path.poses)
    np.testing.assert_array_equal(by_name.poses, by_object.poses)
    by_name.plot(tmp_path / "turn.png")
    by_name.to_html(tmp_path / "turn.html")
    assert {path.name for path in tmp_path.iterdir()} == {"turn.png", "turn.html"}


def test_play_refuses_a_script_beyond_the_joint_limits_of_its_robot() -> None:
    script = keystride.Script(keyframes=(keystride.Keyframe(time=1, posture={"FL_calf_joint": -170.0}),))
    with pytest.raises(ScriptError, match=r"keyframe 1, posture\.FL_calf_joint: -170 is beyond its limit"):
        keystride.play(script, "go2-position")


def test_evaluate_returns_the_rows_of_the_suites() -> None:
    rows = keystride.evaluate("go2-position", ["matching"], episodes=2)
    assert {row.suite for row in rows} == {"matching", "motors"}
    assert all(row.episodes == 2 for row in rows if row.suite == "matching")


def test_an_unknown_suite_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unknown suite 'nothing'; choose from matching"):
        keystride.evaluate("go2-position", ["nothing"])
