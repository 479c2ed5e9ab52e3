from pathlib import Path

import numpy as np
import pytest

from keystride.motion.clip import make_clip
from keystride.motion.library import save_library
from keystride.policy.bundle import CONFIG, PolicyError
from keystride.policy.provenance import AUTHORED, licence_of, read_settings, training_sources
from keystride.robot.go2 import GO2


def library(folder: Path, *licences: str) -> str:
    """Clips of one minute; the first is held out."""
    frames = 60 * 50 + 1
    still = np.tile([0.0, 0.0, 0.3], (frames, 1)), np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1)), np.zeros((frames, 12))
    clips = [make_clip(f"clip{i}", GO2, *still, {"licence": licence}) for i, licence in enumerate(licences)]
    save_library(clips, folder, GO2.name, held_out=["clip0"])
    return str(folder)


def test_clips_that_were_trained_on_are_counted_with_their_licences(tmp_path: Path) -> None:
    dogs = library(tmp_path / "dogs", "MIT", "CC BY-NC 4.0", "CC BY 4.0")
    sources = training_sources({"library": [dogs], "authored": True})
    assert [source.description for source in sources] == ["dogs: 2 clips, 2 min (CC BY 4.0, CC BY-NC 4.0)", AUTHORED]
    assert licence_of(sources) == "CC BY 4.0 and CC BY-NC 4.0"


def test_authored_clips_alone_leave_the_weights_free() -> None:
    assert licence_of(training_sources({"library": [], "authored": False})) == "Apache-2.0"


def test_a_library_out_of_reach_leaves_the_licence_unknown() -> None:
    sources = training_sources({"library": ["somewhere/cats"], "authored": True})
    assert licence_of(sources) == "unknown licence"
    assert sources[0].description == "cats (clips not available)"


def test_settings_of_something_else_are_refused(tmp_path: Path) -> None:
    deep = "learner: " + "{a: " * 5000 + "}" * 5000
    for text, reason in (
        ("a: [", "config.yaml:2: is not YAML"),
        ("a: 1", "config.yaml:1: learner: field required"),
        ("- 1", r"input should be .*, found \[1\]"),
        (deep, "nested more than"),
        ("a: &x [1]\nb: *x", "alias"),
    ):
        (tmp_path / CONFIG).write_text(text)
        with pytest.raises(PolicyError, match=reason):
            read_settings(tmp_path)
