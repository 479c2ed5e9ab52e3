"""The deployment as a process on a terminal of its own."""

from pathlib import Path

from keystride.keyframes.files import save_script
from keystride.keyframes.script import Keyframe, Script
from keystride.studio.live.deploy_process import LINES, DeployProcess

PATIENCE = 120.0  # s: the machine may be busy


def test_output_status_and_outcome_are_collected(tmp_path: Path):
    script = tmp_path / "script.yaml"
    save_script(Script(keyframes=(Keyframe(time=0.6, position=(0.1, 0.0)),)), script)
    process = DeployProcess(["--policy", "STUB-TROT", "--script", str(script), "--dry-run"])
    assert process.wait(PATIENCE)
    assert (process.exit_code, process.stopped) == (0, False)
    assert process.ended == {"played": True, "damped": True, "reason": ""}
    assert process.status["state"] == "damping"
    assert 0 < len(process.lines) <= LINES
    assert any("-> running" in line for line in process.lines)
    process.press(b"s")  # there is no terminal any more: nothing happens
    process.close()
    assert not process.stopped


def test_a_refusal_is_an_exit_code_and_its_message():
    process = DeployProcess(["--policy", "STUB-TROT", "--script", "/no/script.yaml", "--dry-run"])
    assert process.wait(PATIENCE)
    assert (process.exit_code, process.ended) == (2, None)
    assert any("No such file" in line for line in process.lines)
