"""Where a script leaves the ranges that a policy was trained on, after its gaps have been filled in."""

from dataclasses import dataclass

import numpy as np

from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, Goals
from keystride.keyframes.inbetween.events import Present
from keystride.keyframes.inbetween.planner import WaypointPlan, plan
from keystride.keyframes.inbetween.ranges import departures
from keystride.keyframes.postures import stand
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.policy.metadata import Metadata
from keystride.robot.description import Robot


@dataclass(frozen=True)
class Outside:
    """The row of a keyframe, counted from 0, and what about it or the path to it was not trained."""

    row: int
    message: str


def planned(script: Script, metadata: Metadata, robot: Robot, *, inbetween: bool = True) -> WaypointPlan:
    """Return keyframes and waypoints for a robot that starts at the origin, facing x."""
    goals = script_goals(script, robot=robot)
    ranges = metadata.ranges
    present = Present(np.zeros(1, dtype=np.int64), np.zeros((1, 2)), np.zeros(1), np.zeros((1, 2)))
    found = plan(goals, present, ranges, stand(robot))
    return found if inbetween else _without_waypoints(found)


def outside_training(script: Script, metadata: Metadata, robot: Robot, *, inbetween: bool = True) -> list[Outside]:
    """Return an entry for each way in which a keyframe, or the path to it, leaves the trained ranges."""
    found = planned(script, metadata, robot, inbetween=inbetween)
    unknown = [
        Outside(row, f"asks for {', '.join(parts)}; the policy knows {', '.join(metadata.goal_components)}")
        for row, bits in enumerate(script_goals(script, robot=robot).presence[0])
        for parts in [
            [name for name, bit in zip(COMPONENTS, bits, strict=True) if bit and name not in metadata.goal_components]
        ]
        if parts
    ]
    keyframe = np.cumsum(~found.soft[0]) - ~found.soft[0]  # (N,) to which keyframe each row leads
    seen: dict[tuple[int, str], Outside] = {}
    for departure in departures(found.goals, found.path[0], metadata.ranges, np.zeros(3)):
        soft, row = found.soft[0, departure.row], int(keyframe[departure.row])
        time = found.goals.step[0, departure.row] * CONTROL_DT
        where = f"the waypoint at {time:.2f} s on the way to it " if soft else ""
        kind = departure.message.split()[0]
        seen.setdefault((row, kind), Outside(row, where + departure.message))
    return sorted([*unknown, *seen.values()], key=lambda one: one.row)


def _without_waypoints(found: WaypointPlan) -> WaypointPlan:
    hard = np.flatnonzero(~found.soft[0])
    return WaypointPlan(found.goals[:, hard], found.path[:, hard], found.soft[:, hard])


def waypoint_lines(found: WaypointPlan) -> list[str]:
    """Return the waypoints of one robot's plan as lines to print."""
    goals: Goals = found.goals
    lines = []
    for row in np.flatnonzero(found.soft[0]):
        x, y, yaw = found.path[0, row]
        held = ", ".join(name for name, bit in zip(COMPONENTS, goals.presence[0, row], strict=True) if bit)
        lines.append(
            f"{goals.step[0, row] * CONTROL_DT:6.2f} s  x {x:.2f}  y {y:.2f}  yaw {np.degrees(yaw):.0f}  ({held})"
        )
    return lines
