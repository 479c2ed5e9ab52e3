"""Build a script in code: walk to the corners of a square, then sit down."""

import math
import sys
from pathlib import Path

import keystride
from keystride.keyframes.feasibility import script_warnings
from keystride.keyframes.files import save_script

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")

side, speed = 1.2, 0.6  # m, m/s
keyframes = []
for corner in range(1, 5):
    angle = math.pi / 2 * corner
    x, y = side * (corner in (1, 2)), side * (corner in (2, 3))
    keyframes.append(keystride.Keyframe(time=corner * side / speed, position=(x, y), yaw=math.degrees(angle)))
keyframes.append(keystride.Keyframe(time=4 * side / speed + 2.0, posture="sit", label="sit"))
script = keystride.Script(keyframes=tuple(keyframes))

robot = keystride.load_robot("go2")
for warning in script_warnings(script, robot):  # what exceeds the robot's limits, before anything is simulated
    print(warning)
save_script(script, out / "square.yaml")

recording = keystride.play(script, title="square")
print(recording.errors[:, 0].round(2), "m from each corner")
recording.to_html(out / "square.html")
