"""The simulated robot as a process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keystride.deploy.selftest.processes import free_port, reserved_domain


def test_it_ends_with_its_input_and_writes_its_record(tmp_path: Path):
    pytest.importorskip("cyclonedds", reason="cyclonedds comes with the extra deploy")
    record = tmp_path / "record.npz"
    command = [sys.executable, "-m", "keystride", "deploy", "sim", "--control", "--no-noise", "--no-sport"]
    with (
        reserved_domain() as domain,
        subprocess.Popen(
            [*command, "--domain", str(domain), "--pose-port", str(free_port()), "--record", str(record)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("simulated Go2; poses to udp://127.0.0.1:")
        print('{"disturb": "rain", "value": 1}\n{"disturb": "deaf", "value": true}', file=process.stdin, flush=True)
        process.stdin.close()
        assert "s simulated" in process.stdout.read()
        complaints = process.stderr.read()
    assert process.returncode == 0
    assert complaints.count("error: ") == 1
    assert "unknown disturbance 'rain'" in complaints
    with np.load(record, allow_pickle=False) as saved:
        columns = {name: saved[name] for name in saved.files}
    for name in ("sent", "sent_stiffness"):  # a value per command
        assert len(columns.pop(name)) == 0
    assert len({len(values) for values in columns.values()}) == 1
    assert columns["qpos"].shape[1] == 19
    assert not columns["commanded"].any()  # nobody sent a command
    assert not columns["motion_service"].any()
