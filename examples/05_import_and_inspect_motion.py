"""Write a motion as CSV, import it as a clip, and look at its quality and tags."""

import sys
from pathlib import Path

import numpy as np

import keystride
from keystride.motion.authored.catalogue import authored_clips
from keystride.motion.importers.catalogue import ImportOptions
from keystride.motion.importers.importing import RefusedFile, import_files
from keystride.motion.library import save_library

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
out.mkdir(parents=True, exist_ok=True)
robot = keystride.load_robot("go2")

# Any source will do that has base position, quaternion x y z w and twelve joint angles, 50 times a second.
clip = next(clip for clip in authored_clips(robot) if "trot" in clip.tags)
orientation = clip.base_orientation[:, [1, 2, 3, 0]]
table = np.concatenate([clip.base_position, orientation, clip.joint_angles], axis=1)
np.savetxt(out / "trot.csv", table, delimiter=",")

for result in import_files("csv", [out / "trot.csv"], robot, ImportOptions(licence="CC0-1.0")):
    if isinstance(result, RefusedFile):
        print("left out", result.file, result.reason)
        continue
    for one in result:
        print(f"{one.clip.name}: {one.clip.seconds:.1f} s, {', '.join(one.clip.tags)}")
        print(
            f"  mean speed {one.figures.mean_speed:.2f} m/s, feet sink {1000 * one.figures.penetration_max:.1f} mm at most"
        )
    save_library([one.clip for one in result], out / "library", robot.name)
print("train on it with: keystride train --library", out / "library")
