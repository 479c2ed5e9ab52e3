import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from keystride.errors import FileError
from keystride.policy.bundle import (
    CARD,
    CONFIG,
    CRITIC,
    CURVE,
    FIGURES,
    NOTES_FILE,
    POLICY_FILE,
    WEIGHTS,
    PolicyError,
    run_checkpoint,
)
from keystride.policy.export import Trained, load_trained
from keystride.policy.loading import Weights, load_weights, save_weights
from keystride.policy.packing import card, check_bundle, pack
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2

ROW = {
    "suite": "matching",
    "scenario": "walk",
    "goal": 1,
    "metric": "distance_m",
    "mean": 0.0871,
    "std": 0.02,
    "episodes": 200,
    "falls": 1,
    "paper": 0.087,
    "analogous": None,
}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_bundle_holds_everything_and_is_whole(bundle: Path, run_folder: Path) -> None:
    assert content(bundle).keys() == {POLICY_FILE, CRITIC, WEIGHTS, CONFIG, CURVE, CARD}
    assert (bundle / CONFIG).read_bytes() == (run_folder / CONFIG).read_bytes()
    assert json.loads((bundle / CURVE).read_text())["training"]["reward/goal"] == [0.5]
    check_bundle(bundle, GO2)


def test_a_policy_has_the_settings_of_the_stage_it_was_saved_in(run_folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "staged"
    shutil.copytree(run_folder, run)
    recipe = yaml.safe_load((run / CONFIG).read_text())
    recipe["task"]["goals"] = "position"
    recipe["stages"] = [{"name": "all", "until": 200_000, "overrides": {"task": {"goals": "any"}}}]
    (run / CONFIG).write_text(yaml.safe_dump(recipe))
    assert load_trained(run, GO2).goals == "any"
    pack(run, tmp_path / "bundles" / "staged", robot=GO2)
    assert load_trained(tmp_path / "bundles" / "staged", GO2).goals == "any"
    assert yaml.safe_load((tmp_path / "bundles" / "staged" / CONFIG).read_text())["recipe"] == recipe


def test_a_bundle_can_be_loaded_and_exported_like_its_run(bundle: Path, run_folder: Path) -> None:
    assert load_trained(bundle, GO2).origin == load_trained(run_folder, GO2).origin


def test_onnx_of_other_weights_is_noticed(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(bundle, other)
    weights = load_weights(bundle)
    actor = {name: values + 1 for name, values in weights.actor.items()}
    save_weights(Weights(actor, weights.critics, weights.discriminator), other / WEIGHTS)
    with pytest.raises(PolicyError, match=r"not made from its weights.safetensors"):
        check_bundle(other, GO2)


@pytest.fixture
def copy(bundle: Path, tmp_path: Path) -> Path:
    shutil.copytree(bundle, tmp_path / "tiny")
    return tmp_path / "tiny"


def refuse(source: Path, folder: Path, error: type[Exception], reason: str, **more: Any) -> None:
    """The attempt fails, and leaves the folder and its neighbours as they were."""
    before = {path.name: content(path) if path.is_dir() else path.read_bytes() for path in folder.parent.iterdir()}
    with pytest.raises(error, match=reason):
        pack(source, folder, **more, robot=GO2)
    after = {path.name: content(path) if path.is_dir() else path.read_bytes() for path in folder.parent.iterdir()}
    assert after == before


def test_a_folder_that_is_no_bundle_is_never_replaced(run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.md").write_text("one")
    refuse(run_folder, tmp_path / "thesis", PolicyError, "is not a bundle: it will not be replaced")


def test_figures_of_another_kind_leave_the_bundle_as_it_is(copy: Path) -> None:
    figures = copy.parent / "figures.json"
    row = {"suite": "a", "scenario": "b", "goal": 1, "metric": "c", "mean": 1, "std": 1, "episodes": 1, "falls": 0}
    analogous = json.dumps([row | {"analogous": "wide"}])
    for text in ("{", "3", '{"rows": 3}', '{"rows": [{"suite": "matching"}]}', '{"mean": 1}', analogous):
        figures.write_text(text)
        refuse(copy, copy, FileError, r"figures\.json: ", figures=figures)


def test_notes_that_are_no_text_leave_the_bundle_as_it_is(copy: Path) -> None:
    notes = copy.parent / "notes.txt"
    notes.write_bytes(b"\xff\xfe\x00bad")
    refuse(copy, copy, FileError, r"notes\.txt: not text in UTF-8", notes=notes)
    (copy / NOTES_FILE).write_bytes(b"\xff\xfe\x00bad")
    refuse(copy, copy, FileError, r"notes\.md: not text in UTF-8")


def test_figures_without_end_are_refused(copy: Path) -> None:
    figures = copy.parent / "figures.json"
    figures.write_text('{"rows": [' + ",".join(["{}"] * 100_000) + "]}")
    refuse(copy, copy, FileError, r"figures\.json: 100000 rows; allowed: at most 10000", figures=figures)


def test_weights_that_do_not_fit_leave_no_trace(run_folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "other"
    shutil.copytree(run_folder, run)
    checkpoint = run_checkpoint(run)
    assert checkpoint is not None
    saved = (checkpoint / "learner.json").read_text()
    (checkpoint / "learner.json").write_text(saved.replace('"width": 16', '"width": 24'))
    assert (checkpoint / "learner.json").read_text() != saved
    (tmp_path / "bundles").mkdir()
    refuse(run, tmp_path / "bundles" / "new", PolicyError, "do not belong together")


def test_a_new_bundle_takes_the_old_ones_place_or_leaves_it(bundle: Path, copy: Path) -> None:
    """The first attempt fails when its networks are already written."""
    missing = copy.parent / "nowhere.md"
    refuse(bundle, copy, FileNotFoundError, "nowhere", notes=missing)
    figures, notes = copy.parent / "figures.json", copy.parent / "notes.md"
    figures.write_text(json.dumps({"rows": [ROW]}))
    notes.write_text("- It limps.\n")
    pack(bundle, copy, figures, notes, robot=GO2)
    assert json.loads((copy / FIGURES).read_text())["rows"] == [ROW]
    card = (copy / CARD).read_text()
    assert "| matching | walk | 1 | distance, m | 0.087 | 0.020 | 0.087 | 200 | 1 |" in card
    assert "- It limps." in card
    assert (copy / POLICY_FILE).read_bytes() == (bundle / POLICY_FILE).read_bytes()
    pack(copy, copy, robot=GO2)
    assert (copy / CARD).read_text() == card, "figures and notes stay with the bundle"
    assert sorted(path.name for path in copy.parent.iterdir()) == ["figures.json", "notes.md", "tiny"]


def test_a_card_says_where_the_policy_comes_from(policy: Policy, trained: Trained) -> None:
    metadata = replace(policy.metadata, training_data="mann: 3 clips; own clips", licence="CC BY-NC 4.0")
    text = card("go2-any", metadata, trained.settings | {"start_from": "runs/first"}, 12.34)
    for part in (
        "# go2-any\n",
        "any subset of position, roll, pitch, yaw and posture",
        "- mann: 3 clips\n- own clips\n",
        "under CC BY-NC 4.0, like the clips. It may not be used commercially.",
        "0.1 million control steps, 12.3 hours",
        "started from the weights of `runs/first`",
        "Not measured yet",
        "## Known limits",
    ):
        assert part in text


def test_own_clips_alone_forbid_nothing(policy: Policy, trained: Trained) -> None:
    text = card("own", policy.metadata, trained.settings, 1.0)
    assert "commercially" not in text
    assert "started from" not in text
