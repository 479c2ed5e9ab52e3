"""A slice of `make fuzz`, and files that were trouble once. Each is read in a process of its own, within bounds."""

import gzip
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fuzz import GOOD, judge, prepare, run_cases, table
from readers import READERS
from seeds import SEEDS, dog_bvh, write_seeds

from keystride.deploy.log.flight import read_log
from keystride.errors import FileError, UserError
from keystride.reading import TEXT_BYTES, read_text, unpack

TORCH = ("checkpoint", "bundle", "pack", "run")
LIGHT = tuple(name for name, seed in SEEDS.items() if seed.reader not in TORCH)
FILES = 250


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz") / "seeds"
    write_seeds(folder, LIGHT)
    return folder


@pytest.mark.parametrize("name", LIGHT)
def test_the_seeds_themselves_are_accepted(name: str, seeds: Path):
    READERS[SEEDS[name].reader](seeds / name / SEEDS[name].file)


def test_damaged_files_are_refused_in_one_line_or_read(seeds: Path):
    outcomes = list(run_cases(range(FILES), seeds, LIGHT, workers=1))
    assert len(outcomes) == FILES
    bad = [outcome for outcome in outcomes if outcome.kind not in GOOD]
    assert not bad, "\n".join([table(outcomes), *(f"case {one.case} ({one.seed}): {one.message}" for one in bad)])
    assert sum(outcome.kind == "error" for outcome in outcomes) > FILES / 2


@pytest.mark.parametrize("name", LIGHT)
def test_a_case_is_always_the_same(name: str, seeds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    contents = []
    for now in (1e9, 2e9):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        contents.append([prepare(seeds, name, Random(case), tmp_path / "case").read_bytes() for case in range(5)])
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("CHANNELS 3 Zrotation", "CHANNELS -2 Zrotation", "line 9: '-2' is not a number of channels; allowed: 0 to 6"),
        ("CHANNELS 3 Zrotation", "CHANNELS 99999999999 Zrotation", "is not a number of channels"),
        ("Zrotation", "Wrotation", "'Wrotation' is not a channel; allowed: Xposition"),
        ("OFFSET 0 -36 0", "OFFSET 0 -36", "'CHANNELS' is not a number"),
        ("0.0166667", "0", "the frame rate is inf per second; allowed: 1 to 1000"),
        ("0.0166667", "1e9", "the frame rate is 1e-09 per second"),
        ("0.0166667", "nan", "the frame rate is nan"),
        ("Frames: 60", "Frames: 99999999", "99999999 frames; allowed: at most 100000"),
    ],
)
def test_bvh_files_that_never_ended(old: str, new: str, message: str, tmp_path: Path):
    path = tmp_path / "walk.bvh"
    path.write_text(dog_bvh(60).replace(old, new, 1))
    with pytest.raises(FileError, match=message) as caught:
        READERS["mann"](path)
    assert judge(path, str(caught.value)) == "error"


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path):
    block = gzip.compress(bytes(16 << 20))  # members may follow each other without end
    path = tmp_path / "walk.bvh.gz"
    path.write_bytes(block * 200)  # 3 GB of zeros in 3 MB
    with pytest.raises(FileError, match="too large; allowed: at most 64 MiB, unpacked"):
        read_text(path)
    with pytest.raises(FileError, match="too large"):
        unpack(block * 200, TEXT_BYTES)


BOMB = "a: &a [x, x, x]\n" + "".join(f"{i}: &n{i} [*{'a' if i == 0 else f'n{i - 1}'}, *a]\n" for i in range(40))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, ":2: aliases .* are not allowed"),
        ("[" * 100_000, ":1: nested too deep; allowed: 32 levels"),
        ("a: !!python/name:os.system\n", ":1: not valid YAML: could not determine a constructor"),
        ("a: 2026-99-99\n", ": not valid YAML: month must be in 1..12"),
        ("a" * (2 << 20), ": too large; allowed: at most 1 MiB"),
    ],
)
@pytest.mark.parametrize("reader", ["recipe", "robot"])
def test_yaml_that_unfolds_without_end_is_refused(reader: str, text: str, message: str, tmp_path: Path):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises((FileError, UserError), match=rf"file\.yaml{message}") as caught:
        READERS[reader](path)
    assert judge(path, str(caught.value)) == "error"


def test_a_flight_log_that_a_kill_cut_short_is_read(seeds: Path, tmp_path: Path):
    folder = tmp_path / "log"
    shutil.copytree(seeds / "flight", folder)
    events = folder / "events.jsonl"
    whole = read_log(folder).events
    events.write_bytes(events.read_bytes()[:-10])
    assert read_log(folder).events == whole[:-1]
    events.write_text("{}\n")
    with pytest.raises(FileError, match=r"events\.jsonl:1: not an event"):
        read_log(folder)


def test_a_worker_that_cannot_start_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="cannot start"):
        list(run_cases(range(3), tmp_path, LIGHT, workers=1))


def test_an_archive_that_announces_terabytes_is_not_allocated(seeds: Path, tmp_path: Path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }\n"
    with zipfile.ZipFile(seeds / "clip" / "walk.npz") as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    members["joint_angles.npy"] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    path = tmp_path / "walk.npz"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(
        FileError, match=r"walk.npz: array 'joint_angles': \(10000000000000,\) of float64 announced, 0 bytes"
    ):
        READERS["clip"](path)


@pytest.mark.parametrize("file", ["../walk.npz", "/etc/passwd", "..", "a/b.npz", "a\\b.npz", ".hidden.npz", "walk", ""])
def test_an_index_names_files_of_its_folder_only(file: str, seeds: Path, tmp_path: Path):
    index = json.loads((seeds / "index" / "library" / "index.json").read_text())
    index["clips"][0]["file"] = file
    path = tmp_path / "index.json"
    path.write_text(json.dumps(index))
    with pytest.raises(FileError, match=r"index.json: clips.0.file: "):
        READERS["library"](path)


def test_a_pipe_does_not_block_the_reader(tmp_path: Path):
    path = tmp_path / "walk.bvh"
    os.mkfifo(path)
    with pytest.raises(FileError, match=r"walk\.bvh: not a regular file"):
        READERS["mann"](path)


def test_external_data_is_refused_before_the_runtime_sees_it(seeds: Path, tmp_path: Path):
    import onnx

    from keystride.policy.bundle import ZEROS, sealed

    model = onnx.load(seeds / "policy" / "policy.onnx")
    properties = {entry.key: entry.value for entry in model.metadata_props} | {"file_sha256": ZEROS}
    onnx.helper.set_model_props(model, properties)
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret.bin")
    tensor.ClearField("raw_data")
    path = tmp_path / "policy.onnx"
    path.write_bytes(sealed(model.SerializeToString()))
    np.zeros(100_000).tofile(tmp_path / "secret.bin")
    with pytest.raises(FileError, match=r"policy\.onnx: its weights are in other files"):
        READERS["policy"](path)


def test_kills_lose_nothing():
    """Scripts, the studio, libraries, checkpoints; `make fuzz` adds bundles and training."""
    works = ["script", "studio", "library", "run"]
    command = [sys.executable, str(Path(__file__).with_name("crashes.py")), "--only", *works]
    done = subprocess.run([*command, "--kills", "40"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 kills, 0 with something lost" in done.stdout.splitlines()[-1]


def test_kills_find_a_file_that_is_overwritten_in_place():
    command = [sys.executable, str(Path(__file__).with_name("crashes.py")), "--only", "unsafe", "--kills", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "script.yaml: is empty" in done.stdout
