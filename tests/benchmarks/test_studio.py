"""`keystride benchmark studio`: what it needs, and how it goes on after an interruption."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from keystride.benchmarks.studio import cpu_seconds, resident_megabytes
from keystride.commands.main import main
from keystride.studio.playback.controllers import STAND_STILL


def test_the_benchmark_needs_a_browser(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("PATH", "")
    assert main(["benchmark", "studio", "--policy", "stand still (no policy)"]) == 2
    assert "Chromium" in capsys.readouterr().err


def test_the_benchmark_goes_on_where_it_was_interrupted(
    browser: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    figures = {
        "policy": STAND_STILL,
        "robot": "go2",
        "seconds": 0.0,
        "key": {"median_ms": 12.0, "p95_ms": 34.0},
        "forecast 1": {"first": 1.0, "whole": 2.0, "first_after_edit": 3.0, "whole_after_edit": 4.0},
        "forecast waypoints 1": {"first": 5.0, "whole": 6.0, "first_after_edit": 7.0, "whole_after_edit": 8.0},
    }
    output = tmp_path / "figures.json"
    output.write_text(json.dumps(figures))
    command = ["benchmark", "studio", "--policy", STAND_STILL, "--keyframes", "1", "--output", str(output)]
    assert main([*command, "--seconds", "0"]) == 0
    measured = json.loads(output.read_text())
    assert set(measured) == {*figures, "simulation 1", "simulation waypoints 1"}
    assert measured["key"] == figures["key"]
    printed = capsys.readouterr().out
    assert "key to picture: 12 ms, 95th percentile 34 ms" in printed
    assert "forecast of 1 keyframes with waypoints between them: first answer after 5.0 s" in printed
    assert main([*command, "--seconds", "5"]) == 2
    assert "other settings" in capsys.readouterr().err


def test_a_benchmark_without_scripts_is_refused(capsys: pytest.CaptureFixture[str]):
    assert main(["benchmark", "studio", "--keyframes"]) == 2
    assert "--keyframes needs at least one number" in capsys.readouterr().err


def test_a_process_is_weighed():
    busy = cpu_seconds(os.getpid())
    deadline = time.process_time() + 0.1
    while time.process_time() < deadline:
        pass
    assert cpu_seconds(os.getpid()) - busy == pytest.approx(0.1, abs=0.05)
    assert resident_megabytes(os.getpid()) > 10.0
    assert (cpu_seconds(None), resident_megabytes(None)) == (0.0, 0.0)
