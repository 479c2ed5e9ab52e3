import json
from pathlib import Path

import numpy as np
import pytest

from keystride.deploy.log.flight import FlightLog, read_log


def write(folder, rows: int, **options) -> FlightLog:
    log = FlightLog(folder, {"policy": "test"}, **options)
    for number in range(rows):
        row = log.row()
        row["time"], row["tick"], row["target"] = 0.002 * number, number, number
        if number % 1000 == 500:
            log.note(0.002 * number, f"event {number}")
    log.close(60.0)
    return log


def test_a_log_reads_back_as_it_was_written(tmp_path):
    log = write(tmp_path / "log", 2500)
    assert log.lost == 0
    back = read_log(tmp_path / "log")
    assert (back.rows["tick"] == np.arange(2500)).all()
    assert (back.rows["target"][:, 5] == np.arange(2500)).all()
    assert back.time[-1] == pytest.approx(0.002 * 2499)
    assert [text for _, text in back.events] == ["event 500", "event 1500"]
    assert back.about == {"policy": "test"}


def test_every_column_is_there_by_its_name(tmp_path):
    write(tmp_path / "log", 10)
    with np.load(tmp_path / "log" / "part-00000.npz", allow_pickle=False) as file:
        assert file["joint_angles"].shape == (10, 12)
        assert {"late", "state", "base_position", "policy_target", "stiffness"} <= set(file.files)


def test_a_log_keeps_its_latest_parts_only(tmp_path):
    write(tmp_path / "log", 5500, parts=2)
    assert sorted(path.name for path in (tmp_path / "log").glob("part-*")) == ["part-00004.npz", "part-00005.npz"]
    assert read_log(tmp_path / "log").rows["tick"][0] == 4000


def test_a_log_is_never_written_over(tmp_path):
    write(tmp_path / "log", 10)
    with pytest.raises(FileExistsError, match="flight log already"):
        FlightLog(tmp_path / "log", {})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_costs_rows_and_nothing_else(tmp_path):
    (tmp_path / "log").mkdir()
    for number in range(2):
        (tmp_path / "log" / f"part-{number:05d}.part").symlink_to("/dev/full")
    log = write(tmp_path / "log", 1500)
    assert log.lost == 1500
    assert "No space left" in log.problem


def test_what_is_not_a_log_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no flight log"):
        read_log(tmp_path)
    np.savez(tmp_path / "part-00000.npz", time=np.zeros(3))
    (tmp_path / "about.json").write_text(json.dumps({}))
    with pytest.raises(ValueError, match="another version"):
        read_log(tmp_path)
