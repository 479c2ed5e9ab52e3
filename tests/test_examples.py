"""Every Python example runs as a user would run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_numbered_examples() -> None:
    assert [path.name[:3] for path in EXAMPLES] == [f"{number:02d}_" for number in range(1, len(EXAMPLES) + 1)]
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_is_short(path: Path, tmp_path: Path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) < 60
    for extra, module in (("gym", "gymnasium"), ("train", "torch")):
        if f"[{extra}]" in source:
            pytest.importorskip(module, reason=f"{module} comes with the extra {extra}")
    command = [sys.executable, str(path), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 0, done.stderr
    assert done.stdout
