"""The forecast process: lines of JSON in, lines of JSON out."""

import json
import subprocess
import sys

from keystride.keyframes.files import script_data
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.playback import forecast_process
from keystride.studio.playback.controllers import STAND_STILL
from keystride.studio.playback.forecast_process import ROBOT_FORMAT

SCRIPT = Script(keyframes=(Keyframe(time=0.3, yaw=0.0), Keyframe(time=0.6, position=(1.0, 0.0))))


def test_the_process_answers_a_line_with_lines_and_ends_with_its_input():
    asked = {
        "number": 7,
        "script": script_data(SCRIPT),
        "policy": STAND_STILL,
        "robot": ROBOT_FORMAT.dump_python(GO2, mode="json"),
        "friction": 0.8,
        "inbetween": True,
    }
    with subprocess.Popen(
        [sys.executable, "-m", forecast_process.__name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(asked), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline())
        process.stdin.close()
        later = [json.loads(line) for line in process.stdout]
    assert process.returncode == 0
    for one in (answer, *later):
        assert one["number"] == 7
        assert one["met"] == [one["rollouts"], 0]  # it faces forwards, and nobody moves it
        first, second = one["errors"]
        assert first[0] == -1.0  # the first keyframe asks for no position
        assert second[0] > 0.8
