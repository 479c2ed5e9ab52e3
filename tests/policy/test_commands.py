"""`keystride export` and `keystride benchmark policy`, as a user calls them."""

import json
from pathlib import Path

import pytest

from keystride.commands.main import main
from keystride.policy.bundle import POLICY_FILE


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that ends with exit code 2."""
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_export_of_a_bundle_is_its_file(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "policy.onnx"
    assert main(["export", str(bundle), "--out", str(out)]) == 0
    assert out.read_bytes() == (bundle / POLICY_FILE).read_bytes()
    assert capsys.readouterr().out == f"wrote {out} (licence of the weights: Apache-2.0)\n"


def test_a_bundle_gets_its_figures(bundle: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    row = {
        "suite": "s",
        "scenario": "c",
        "goal": 2,
        "metric": "yaw_deg",
        "mean": 1,
        "std": 2,
        "episodes": 3,
        "falls": 0,
    }
    figures.write_text(json.dumps([row]))
    arguments = ["export", str(bundle), "--bundle", str(tmp_path / "b"), "--card-figures", str(figures)]
    assert main(arguments) == 0
    assert "| s | c | 2 | yaw, deg | 1.000 | 2.000 |  | 3 | 0 |" in (tmp_path / "b" / "card.md").read_text()


def test_export_says_what_is_wrong(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "x.onnx")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"?")
    assert refused(capsys, "export", str(bundle)).startswith("error: nothing to write: give --out")
    assert refused(capsys, "export", "nobody", "--out", out).startswith("error: no policy 'nobody': ")
    assert "broken.onnx: it is not an ONNX file" in refused(capsys, "export", str(broken), "--out", out)
    assert "is not a training run" in refused(capsys, "export", str(bundle), "--newest", "--out", out)
    assert not Path(out).exists()


def test_benchmark_of_a_policy(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["benchmark", "policy", "--policy", str(bundle), "--steps", "20", "--robots", "3"]
    assert main([*arguments, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["worst_ms"]
    assert figures["p99_share"] == pytest.approx(figures["p99_ms"] / 20, abs=1e-4)
    assert (figures["steps"], figures["threads"], figures["keyframes"]) == (20, 1, 5)
    single, batch = figures["inbetween"]
    assert (single["robots"], batch["robots"]) == (1, 3)
    assert 0 < single["mean_ms"] <= single["worst_ms"]
    assert main(arguments) == 0
    assert "of the 20 ms budget" in capsys.readouterr().out
