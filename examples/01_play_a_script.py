"""Play a keyframe script and keep what happened: errors, a replay for the browser, a plot."""

import sys
from pathlib import Path

import keystride

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")

recording = keystride.play("course", policy="go2-pose")  # a script that ships; a path works too
for label, errors, met in zip(recording.labels, recording.errors, recording.met, strict=True):
    print(f"{label or 'keyframe':20s} {errors[0]:6.3f} m  {'met' if met else 'missed'}")
print(f"{recording.met.sum()} of {len(recording.met)} keyframes met, fell: {recording.fell_at is not None}")

recording.to_html(out / "course.html")
recording.plot(out / "course.png")
# recording.to_video(out / "course.mp4")  # needs pip install 'keystride[video]'
