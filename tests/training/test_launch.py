"""Real processes, without training in them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keystride.errors import UserError
from keystride.training.launch import WorkerCrash, WorkerKilled, launch

WAIT = """
import os, pathlib, sys, time
from keystride.training.launch import StopRequest, follow_parent
follow_parent()
with StopRequest() as stop:
    pathlib.Path(sys.argv[1], os.environ["RANK"]).write_text(str(os.getpid()))
    while not stop.requested:
        time.sleep(0.01)
"""
FAIL = """
import os, sys
from keystride.training.launch import report_failure
if os.environ["RANK"] == "1":
    {failure}
""" + WAIT  # fmt: skip
LAUNCH = "import sys; from keystride.training.launch import launch; print(launch(sys.argv[1:], 2))"


def program(text: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", text, *map(str, arguments)]


def wait_for_workers(folder: Path) -> list[int]:
    deadline = time.monotonic() + 600
    while len([path for path in folder.iterdir() if path.read_text()]) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    return [int(path.read_text()) for path in folder.iterdir()]


def gone(process: int) -> bool:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
            if Path(f"/proc/{process}/stat").exists() and ") Z " in Path(f"/proc/{process}/stat").read_text():
                return True
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_every_rank_runs_and_knows_its_number(tmp_path: Path) -> None:
    code = "import os, pathlib, sys; pathlib.Path(sys.argv[1], os.environ['RANK']).write_text(os.environ['WORLD_SIZE'])"
    assert launch(program(code, tmp_path), 3) is None
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"0": "3", "1": "3", "2": "3"}


def test_a_mistake_of_one_rank_ends_all_with_its_message(tmp_path: Path) -> None:
    failure = "report_failure('no such clip', by_user=True); sys.exit(1)"
    with pytest.raises(UserError, match=r"^no such clip$"):
        launch(program(FAIL.format(failure=failure), tmp_path), 2)


def test_a_crash_of_one_rank_ends_all_with_its_traceback(tmp_path: Path) -> None:
    failure = "report_failure('Traceback: division by zero', by_user=False); sys.exit(1)"
    with pytest.raises(WorkerCrash, match="division by zero"):
        launch(program(FAIL.format(failure=failure), tmp_path), 2)


def test_a_killed_rank_ends_all(tmp_path: Path) -> None:
    with pytest.raises(WorkerKilled, match="training process 1 was killed by SIGKILL"):
        launch(program(FAIL.format(failure="os.kill(os.getpid(), 9)"), tmp_path), 2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_parent_ends_the_workers(number: int, tmp_path: Path) -> None:
    parent = subprocess.Popen(program(LAUNCH, *program(WAIT, tmp_path)), stdout=subprocess.PIPE, text=True)
    workers = wait_for_workers(tmp_path)
    parent.send_signal(number)
    output, _ = parent.communicate()
    assert output.strip() == str(int(number))
    assert all(gone(worker) for worker in workers)


def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(program(LAUNCH, *program(WAIT, tmp_path)))
    workers = wait_for_workers(tmp_path)
    parent.kill()
    parent.wait()
    assert all(gone(worker) for worker in workers)
