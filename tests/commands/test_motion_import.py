import gzip
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from keystride.commands.main import main
from keystride.motion.clip import Clip, save_clip
from keystride.motion.library import load_library_clips
from keystride.robot.go2 import GO2


def write_standing(path: Path, height: float = 0.333, frames: int = 60) -> None:
    row = np.concatenate([[0.0, 0.0, height], [0.0, 0.0, 0.0, 1.0], GO2.stance])
    path.write_text("\n".join(",".join(map(str, row)) for _ in range(frames)))


def test_import_writes_a_library_and_names_what_it_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_standing(tmp_path / "good.csv")
    write_standing(tmp_path / "bad.csv", height=333.0)
    out = tmp_path / "library"
    assert main(["motion", "import", "--from", "csv", str(tmp_path), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "good" in said
    assert "left out bad.csv: wrong unit" in said
    assert [clip.name for clip in load_library_clips(out)] == ["good"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 frames"),
        (b"\x93NUMPY\x00\xff" * 40, "UTF-8"),
        (b"1,2,3", "3 values in row 0, 19 expected"),
        (b"0,0,nan,0,0,0,1" + b",0" * 12 + b"\n0,0,0.3,0,0,0,1" + b",0" * 12, "non-finite position"),
    ],
    ids=["empty", "binary", "short rows", "not a number"],
)
def test_one_bad_file_does_not_stop_the_good_ones(tmp_path: Path, content: bytes, message: str):
    clips, out = tmp_path / "clips", tmp_path / "library"
    clips.mkdir()
    (clips / "b_bad.csv").write_bytes(content)
    for name in ("a_good", "c_good"):
        write_standing(clips / f"{name}.csv")
    command = [sys.executable, "-m", "keystride", "motion", "import", "--from", "csv", str(clips), "--out", str(out)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left_out = [line for line in done.stdout.splitlines() if "left out" in line]
    assert len(left_out) == 1
    assert "b_bad.csv" in left_out[0]
    assert message in left_out[0]
    assert [clip.name for clip in load_library_clips(out)] == ["a_good", "c_good"]


def test_names_that_no_library_can_hold_are_made_safe_and_unique(tmp_path: Path):
    clips, out = tmp_path / "clips", tmp_path / "library"
    clips.mkdir()
    for name in ("x" * 235, ".hidden", "new\nline", "walk", "Walk", "..", "ü" * 110):
        write_standing(clips / f"{name}.csv")
    (clips / "walk.csv.gz").write_bytes(gzip.compress((clips / "walk.csv").read_bytes()))
    (clips / os.fsdecode(b"caf\xe9.csv")).write_bytes((clips / "walk.csv").read_bytes())
    assert main(["motion", "import", "--from", "csv", str(clips), "--out", str(out), "--mirror"]) == 0
    names = {clip.name for clip in load_library_clips(out)}
    assert len(names) == 18
    assert {"hidden", "new_line", "Walk", "walk_2", "walk_3_mirrored", "x" * 180, "ü" * 90, "clip"} <= names


def test_what_looks_like_markup_is_printed_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    clips, out = tmp_path / "clips[b]", tmp_path / "library"
    clips.mkdir()
    clip = load_standing(tmp_path)
    save_clip(replace(clip, metadata={"tags": ["[/b]"]}), clips / "walk[i].npz")
    (clips / "bad[red].npz").write_bytes(b"[/x]")
    assert main(["motion", "import", "--from", "npz", str(clips), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "left out bad[red].npz: " in said
    assert "walk[i]" in said
    assert "[/b]" in said


def load_standing(folder: Path) -> Clip:
    write_standing(folder / "standing.csv")
    assert main(["motion", "import", "--from", "csv", str(folder / "standing.csv"), "--out", str(folder / "one")]) == 0
    return load_library_clips(folder / "one")[0]


def test_nothing_is_written_when_nothing_can_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "bad.csv").write_text("1,2,3")
    out = tmp_path / "library"
    assert main(["motion", "import", "--from", "csv", str(tmp_path), "--out", str(out)]) == 2
    assert "nothing was written" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "csv", "nowhere", "--out", "x"], "nowhere does not exist"),
        (["--from", "csv", ".", "--out", "x"], "contains no csv files"),
        (["--from", "csv", "a.csv", "--out", "x", "--joint-order", "FL FL"], "joint order"),
        (["--from", "csv", "a.csv", "--out", "full"], "not a library"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    if "a.csv" in arguments:
        write_standing(tmp_path / "a.csv")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    assert main(["motion", "import", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error


def test_report_writes_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_standing(tmp_path / "good.csv")
    out = tmp_path / "library"
    assert main(["motion", "import", "--from", "csv", str(tmp_path), "--out", str(out)]) == 0
    assert main(["motion", "report", str(out)]) == 0
    assert "good" in (out / "report.html").read_text()
    assert main(["motion", "report", str(tmp_path)]) == 2
    assert "no index.json" in capsys.readouterr().err
