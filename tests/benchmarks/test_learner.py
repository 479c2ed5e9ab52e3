import json
import os
from pathlib import Path

import pytest

from keystride.benchmarks.learner import BenchmarkLearner, _in_own_process


def test_contenders_run_in_processes_of_their_own() -> None:
    assert _in_own_process(os.getpid) != os.getpid()


def test_figures_are_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert BenchmarkLearner(preset="cpu", batch=48, rounds=1, turns=1, json=tmp_path / "figures.json").run() == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["speedup"] == figures["ours"] / figures["plain"]
    assert figures["gap"] < 1e-4
    assert "cpu network, 48 samples, one thread" in capsys.readouterr().out
