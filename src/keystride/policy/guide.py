"""Play scripts with their gaps filled in, in simulation and on the robot, and report where they leave the training ranges.

The planner adds waypoints where keyframes are farther apart than in training, and after the last keyframe it keeps the
robot in place. Only the policy sees waypoints; errors are measured at keyframes only."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keystride import geometry
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT, NEVER_DUE, VISIBLE_STEPS_AFTER, Goals, used
from keystride.keyframes.inbetween.planner import WaypointPlan, hold, plan
from keystride.keyframes.inbetween.ranges import TrainedRanges, departures, exceeds
from keystride.keyframes.inbetween.routing import Present
from keystride.keyframes.inbetween.segments import DEFAULT_PACE, Pace
from keystride.keyframes.postures import stand
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.policy.bundle import Metadata
from keystride.policy.runtime import Policy, RobotState
from keystride.robot.description import Floats, Robot

CHECK_STEPS = 10  # control steps between checks of whether a robot is where the plan expects it
OFF_PATH = 0.35  # m by which a robot may miss a waypoint
OFF_YAW = 0.8  # rad
CATCH_UP_SPEED = 1.0  # m/s and rad/s at which it may still get there
STOPPING = 0.2  # s: a robot comes to a stop within this time at its speed
GO_BACK = 0.5  # m: after the last keyframe, a robot does not turn round for less than this
HOLD_SECONDS = 10.0  # planned at a time

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Route:
    """The state of a guide between control steps. Immutable, so it can be stored and restored."""

    asked: Goals  # the script's keyframes
    plan: WaypointPlan
    step: NDArray[np.int64]  # (E, N) of the plan's rows, NEVER where unused
    last: NDArray[np.int64]  # (E,) control step of the last keyframe
    renew: NDArray[np.int64]  # (E,) control step at which more must be planned
    pose: Floats  # (E, 3) x, y, yaw to be held after the last keyframe; NaN until then


class Guide:
    """A policy that fills the gaps of scripts; has the same interface as `Policy`."""

    def __init__(self, policy: Policy, robot: Robot, pace: Pace = DEFAULT_PACE) -> None:
        self.policy, self.metadata = policy, policy.metadata
        self.route: Route | None = None
        self._ranges, self._stance, self._pace = policy.metadata.ranges, stand(robot), pace
        self._window: tuple[Route, NDArray[np.int64], Goals] | None = None

    def resting_action(self, joint_angles: Floats) -> Floats:
        return self.policy.resting_action(joint_angles)

    def step(self, state: RobotState, goals: Goals, now: Any, previous_action: Floats) -> tuple[Floats, Floats]:
        """Do what `Policy.step` does; goals are the keyframes of the script."""
        return self.policy.step(state, self.seen(state, goals, now), now, previous_action)

    def seen(self, state: RobotState, goals: Goals, now: Any) -> Goals:
        """Return the keyframes and waypoints that the policy sees at control step now (E,)."""
        route = self.route
        if route is None or route.asked is not goals:
            route = self._begin(_present(state, now), goals)
        stale = route.renew <= now
        if np.any(now % CHECK_STEPS == 0):
            stale |= _off_path(route, state, now)
        if stale.any():
            route = self._renew(route, _present(state, now), np.flatnonzero(stale))
        self.route = route
        return self._shown(route, now)

    def _begin(self, present: Present, goals: Goals) -> Route:
        found = self._roomy(plan(goals, present, self._ranges, self._stance, self._pace))
        last = np.where(used(goals), goals.step, 0).max(axis=1)
        return Route(goals, found, _steps(found), last, last, np.full((len(last), 3), np.nan))

    def _renew(self, route: Route, present: Present, rows: Rows) -> Route:
        """Plan again from where these robots are, to their next keyframe or to where they should stay."""
        goals, pose, renew, merged = route.asked, route.pose.copy(), route.renew.copy(), route.plan
        over = route.last[rows] <= present.step[rows]
        coming, over = rows[~over], rows[over]
        if len(coming):
            found = plan(goals[coming], present[coming], self._ranges, self._stance, self._pace)
            merged = _replaced(merged, coming, self._roomy(found))
        if len(over):
            fresh = over[np.isnan(pose[over, 0])]
            stopped = _stopped(present)
            pose[fresh] = _resting_pose(goals[fresh], stopped[fresh], self._ranges)
            found = hold(
                goals[over],
                pose[over],
                stopped[over],
                self._ranges,
                self._stance,
                pace=self._pace,
                seconds=HOLD_SECONDS,
            )
            renew[over] = found.goals.step.max(axis=1) - 2 * self._ranges.gap_steps[1]
            merged = _replaced(merged, over, self._roomy(found))
        return Route(goals, merged, _steps(merged), route.last, renew, pose)

    def _shown(self, route: Route, now: Any) -> Goals:
        """Return the earliest rows that have not expired, or the script itself if the plan adds nothing to it."""
        if not route.plan.soft.any():
            return route.asked
        first = (route.step < now[:, None] - VISIBLE_STEPS_AFTER).sum(axis=1)
        if self._window is None or self._window[0] is not route or not np.array_equal(self._window[1], first):
            columns = first[:, None] + np.arange(self.metadata.max_keyframes)
            columns = np.minimum(columns, route.step.shape[1] - 1)
            rows = np.arange(len(first))[:, None]
            goals = Goals(*(getattr(route.plan.goals, field.name)[rows, columns] for field in fields(Goals)))
            self._window = (route, first, goals)
        return self._window[2]

    def _roomy(self, found: WaypointPlan) -> WaypointPlan:
        """Add unused columns at the end, so that a window never extends past it."""
        return _widened(found, found.soft.shape[1] + self.metadata.max_keyframes)


def guided(controller: Any, robot: Robot, *, inbetween: bool = True) -> Any:
    """Return a guide for a policy, to be used for one run; return any other controller unchanged."""
    return Guide(controller, robot) if inbetween and isinstance(controller, Policy) else controller


def _present(state: RobotState, now: Any) -> Present:
    velocity = geometry.rotate(state.orientation, state.base_velocity)
    return Present(np.asarray(now), state.position[:, :2], geometry.yaw_of(state.orientation), velocity[:, :2])


def _stopped(present: Present) -> Present:
    """Return where the robots will have stopped."""
    return replace(present, position=present.position + STOPPING * present.velocity, velocity=0.0 * present.velocity)


def _resting_pose(goals: Goals, stopped: Present, ranges: TrainedRanges) -> Floats:
    """Return the pose to hold (E, 3): that of the last keyframe, completed by where the robot stops.

    A robot that stops a little too far, and was not trained to step back, stays where it is.
    """
    at = np.arange(len(stopped.step)), np.where(used(goals), goals.step, -1).argmax(axis=1)
    bits, asked = goals.presence[at], goals.position[at][:, :2]
    yaw = np.where(bits[:, 3], goals.angles[at][:, 2], stopped.yaw)
    offset = asked - stopped.position
    direction = geometry.wrap(np.arctan2(offset[:, 1], offset[:, 0]) - yaw)
    beyond = exceeds(direction, ranges.direction_rad) & (np.linalg.norm(offset, axis=1) < GO_BACK)
    place = np.where(bits[:, :1] & ~beyond[:, None], asked, stopped.position)
    return np.concatenate([place, yaw[:, None]], axis=1)


def _off_path(route: Route, state: RobotState, now: Any) -> NDArray[np.bool_]:
    """Return (E,) which robots cannot reach their next waypoint in time; those next to a keyframe are left alone."""
    coming = np.minimum((route.step < now[:, None]).sum(axis=1), route.step.shape[1] - 1)
    at = np.arange(len(coming)), coming
    reach = CATCH_UP_SPEED * CONTROL_DT * (route.plan.goals.step[at] - now)
    offset = route.plan.path[at][:, :2] - state.position[:, :2]
    turn = geometry.wrap(route.plan.path[at][:, 2] - geometry.yaw_of(state.orientation))
    away = np.linalg.norm(offset, axis=1) > OFF_PATH + reach
    away |= (np.abs(turn) > OFF_YAW + reach) & route.plan.goals.presence[at][:, 3]
    return route.plan.soft[at] & away


def _steps(found: WaypointPlan) -> NDArray[np.int64]:
    return np.where(used(found.goals), found.goals.step, NEVER_DUE)


def _widened(found: WaypointPlan, columns: int) -> WaypointPlan:
    def wide(values: Any) -> Any:
        return np.pad(values, [(0, 0), (0, columns - values.shape[1])] + [(0, 0)] * (values.ndim - 2))

    goals = Goals(*(wide(getattr(found.goals, field.name)) for field in fields(Goals)))
    return WaypointPlan(goals, wide(found.path), wide(found.soft))


def _replaced(whole: WaypointPlan, rows: Rows, part: WaypointPlan) -> WaypointPlan:
    """Replace the plans of some robots."""
    if len(rows) == len(whole.soft):
        return part
    columns = max(whole.soft.shape[1], part.soft.shape[1])
    whole, part = _widened(whole, columns), _widened(part, columns)
    goals = Goals(*(getattr(whole.goals, field.name).copy() for field in fields(Goals)))
    goals[rows] = part.goals
    path, soft = whole.path.copy(), whole.soft.copy()
    path[rows], soft[rows] = part.path, part.soft
    return WaypointPlan(goals, path, soft)


@dataclass(frozen=True)
class Outside:
    """The row of a keyframe, counted from 0, and how it or the path to it leaves the training ranges."""

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
