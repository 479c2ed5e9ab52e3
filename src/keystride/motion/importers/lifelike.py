"""Clips of Tencent's MAX robot (Han et al. 2024): JSON, rows of base position, quaternion x y z w and joints."""

from pathlib import Path

import numpy as np

from keystride.motion.importers.json_file import frame_table, read_motion
from keystride.motion.importers.poses import Poses, from_xyzw, in_leg_order, parse_leg_order
from keystride.motion.importers.relatives import MAX, take_from_relative
from keystride.motion.retargeting.fitting import Take
from keystride.robot.description import Robot

COLUMNS = 19
TRIM = 3  # frames: the first ones of jump and play clips may step by 5 cm
SIGNS = np.tile([1.0, -1.0, -1.0], 4)  # thigh and calf turn the other way round


def read_lifelike(path: Path, name: str, robot: Robot) -> list[Take]:
    content = read_motion(path)
    table = frame_table(content, COLUMNS)[TRIM:]
    order = parse_leg_order(content.get("LegOrder", ["FR", "FL", "HR", "HL"]))
    joints = in_leg_order(table[:, 7:], order) * SIGNS
    poses = Poses(name, 1.0 / float(content["FrameDuration"]), table[:, :3], from_xyzw(table[:, 3:7]), joints)
    return [take_from_relative(poses, MAX, robot)]
