"""The 61-column JSON of adversarial motion priors on the Unitree A1."""

from itertools import permutations
from pathlib import Path

import numpy as np

from keystride.motion.importers.json_file import frame_table, read_motion
from keystride.motion.importers.poses import LEGS, Poses, from_xyzw, in_leg_order
from keystride.motion.importers.problem import ImportProblem
from keystride.motion.importers.relatives import A1, take_from_relative
from keystride.motion.retargeting.fitting import Take
from keystride.robot.description import Floats, Robot
from keystride.robot.kinematics import feet_from_joints

COLUMNS = 61
TOE_ERROR = 0.02  # m, median: more means that joints and toes belong to different legs, or to another robot


def read_amp(path: Path, name: str, robot: Robot, order: tuple[str, ...] = LEGS, source: Robot = A1) -> list[Take]:
    """Velocities are computed anew: some files hold a spike where a quaternion changes its sign."""
    content = read_motion(path)
    table = frame_table(content, COLUMNS)
    require_toes(table, order, source)
    joints = in_leg_order(table[:, 7:19], order)
    poses = Poses(name, 1.0 / float(content["FrameDuration"]), table[:, :3], from_xyzw(table[:, 3:7]), joints)
    return [take_from_relative(poses, source, robot)]


def require_toes(table: Floats, order: tuple[str, ...], source: Robot) -> None:
    """The toe columns have to be where forward kinematics puts the feet."""
    error = toe_error(table, order, source)
    if error < TOE_ERROR:
        return
    best = min(permutations(LEGS), key=lambda other: toe_error(table, other, source))
    least = toe_error(table, best, source)
    advice = f"; joint order {' '.join(best)} fits to {least:.3f} m" if least < TOE_ERROR else ""
    raise ImportProblem(
        f"the toe columns are {error:.3f} m from forward kinematics with joint order {' '.join(order)}{advice}"
    )


def toe_error(table: Floats, order: tuple[str, ...], source: Robot) -> float:
    """Median distance between the toe columns and the feet of the joint columns, m."""
    feet = feet_from_joints(source, in_leg_order(table[:, 7:19], order))
    toes = in_leg_order(table[:, 19:31], order).reshape(-1, 4, 3)
    return float(np.median(np.linalg.norm(feet - toes, axis=-1)))
