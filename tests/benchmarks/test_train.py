"""Several processes and several nodes, for real; rates are printed but not judged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keystride.benchmarks.train import efficiency
from keystride.commands.main import main
from keystride.training.launch import unused_port

SCRIPT = Path(__file__).with_name("two_nodes.py")


def torchrun(node: int, port: int, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(node)]
    command += ["--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", str(port), *arguments]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_two_nodes_end_with_equal_weights(tmp_path: Path) -> None:
    """Two agents of torchrun, as on two machines, with one process each; their robots differ, their weights must not."""
    port = unused_port()
    agents = [torchrun(node, port, str(SCRIPT), str(tmp_path)) for node in (0, 1)]
    output = [agent.communicate()[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], output
    one, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert (one["processes"], one["steps"]) == (other["processes"], other["steps"]) == (2, 3 * 8 * 4)
    assert one["ended"] == other["ended"]
    assert all(one["ended"][name] != one["begun"][name] for name in one["ended"])
    assert one["state"] != other["state"]


def test_the_robot_is_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "train", "--robot", "rex", "--processes", "1"]) == 2
    assert "robot: unknown robot 'rex'; choose from go2" in capsys.readouterr().err


def test_efficiency_is_the_rate_of_a_process_beside_that_of_one_alone() -> None:
    assert efficiency({1: [5000.0, 5200.0], 2: [9000.0, 9180.0]}) == pytest.approx(9090.0 / (2 * 5100.0))


def test_scaling_is_measured_in_turn(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    sizes = ["--environments", "8", "--iterations", "1", "--processes", "2", "--rounds", "1"]
    assert main(["benchmark", "train", "--scaling", *sizes, "--json", str(tmp_path / "scaling.json")]) == 0
    figures = json.loads((tmp_path / "scaling.json").read_text())
    assert {name: len(rates) for name, rates in figures["steps_per_second"].items()} == {"1": 1, "2": 1}
    alone, together = (figures["steps_per_second"][name][0] for name in ("1", "2"))
    assert figures["efficiency"] == pytest.approx(together / (2 * alone))
    assert "efficiency" in capfd.readouterr().out
