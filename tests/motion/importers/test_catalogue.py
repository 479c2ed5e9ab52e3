"""The formats that motion is imported from."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keystride.motion.importers.catalogue import IMPORTERS, ImportOptions
from keystride.motion.importers.importing import (
    find_files,
    import_files,
)
from keystride.robot.go2 import GO2


def write_standing(path: Path, scale: float = 1.0, frames: int = 60) -> None:
    row = np.concatenate([np.array([0.0, 0.0, 0.333]) * scale, [0.0, 0.0, 0.0, 1.0], GO2.stance])
    path.write_text("\n".join(",".join(map(str, row)) for _ in range(frames)))


def test_a_format_is_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_standing(tmp_path / "a.motion")
    monkeypatch.setitem(IMPORTERS, "mine", replace(IMPORTERS["csv"], suffixes=(".motion",), licence=lambda _: "MIT"))
    (result,) = import_files("mine", find_files("mine", tmp_path), GO2, ImportOptions())
    assert isinstance(result, list)
    assert (result[0].clip.metadata["format"], result[0].clip.metadata["licence"]) == ("mine", "MIT")


def test_every_format_says_what_it_reads() -> None:
    for name, importer in IMPORTERS.items():
        assert importer.name == name
        assert importer.about
        assert all(suffix.startswith(".") for suffix in importer.suffixes)
        assert importer.licence(ImportOptions())


def test_readers_take_what_their_files_leave_open(tmp_path: Path) -> None:
    """A CSV file holds neither its rate nor the order of its legs."""
    write_standing(tmp_path / "a.csv", frames=100)
    options = ImportOptions(fps=100.0, order=("FR", "FL", "RR", "RL"))
    (take,) = IMPORTERS["csv"].read(tmp_path / "a.csv", "a", GO2, options)
    assert take.clip.seconds == pytest.approx(0.98)
    assert len(take.clip) == 50
    np.testing.assert_allclose(take.clip.joint_angles[0], GO2.stance.reshape(4, 3)[[1, 0, 3, 2]].ravel())


def test_the_command_line_lists_the_formats_without_loading_them() -> None:
    code = "import sys, keystride.motion.importers.catalogue; print([m for m in sys.modules if 'retargeting' in m])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
