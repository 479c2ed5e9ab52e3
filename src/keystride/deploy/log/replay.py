"""Show a flight log: print a summary, draw a picture, and play the same commands against the simulator."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from keystride.colours import BLUE, GREEN, GRID, ORANGE, PURPLE, RED, SOFT, tint
from keystride.deploy.fault_checks import DeployState
from keystride.deploy.log.flight import Flight, read_log
from keystride.deploy.safety import STREAM_PERIOD, MotorCommand
from keystride.deploy.sim.robot import PHYSICS_STEP, SimulatedGo2
from keystride.plotting import save_figure, styled_figure
from keystride.robot.description import Floats, Robot

STATE_ORDER = list(DeployState)
COMPARED = 1.0  # s for which the open-loop simulation can be expected to follow the log
STATE_COLOURS = (
    GRID,
    *(tint(colour, 0.2) for colour in (BLUE, GREEN, ORANGE, PURPLE, RED)),
)  # in the order of `DeployState`


def replay(folder: Path, robot: Robot, picture: Path, viewer: str) -> int:
    flight = read_log(folder)
    simulated = simulate(flight, robot)
    for line in flight_summary(flight, simulated, robot):
        print(line)
    save_figure(flight_figure(flight, simulated, robot), picture)
    print(f"picture: {picture}", flush=True)
    if viewer != "none":
        show(flight, robot, viewer)
    return 0


@dataclass(frozen=True)
class Simulated:
    """The simulator's motion under the logged commands, starting from the state in which the script began."""

    time: Floats  # (T,) s from the first row
    joint_angles: Floats  # (T, 12)
    position: Floats  # (T, 3)


def simulate(flight: Flight, robot: Robot) -> Simulated | None:
    """Play the commands against the simulator; return None if no script was running with a known base pose."""
    running = np.flatnonzero(flight.rows["state"] == STATE_ORDER.index(DeployState.RUNNING))
    known = [row for row in running if np.isfinite(flight.rows["base_position"][row]).all()]
    if not known:
        return None
    rows = flight.rows[known[0] : running[-1] + 1]
    world = SimulatedGo2(robot, posture="standing")
    first = rows[0]
    world.data.qpos[:3], world.data.qpos[3:7] = first["base_position"], first["base_orientation"]
    world.data.qpos[7:], world.data.qvel[6:] = first["joint_angles"], first["joint_velocities"]
    mujoco.mj_forward(world.model, world.data)
    angles, places = [], []
    for row in rows:
        angles.append(world.data.qpos[7:].copy())
        places.append(world.data.qpos[:3].copy())
        world.receive(MotorCommand(*(row[name].astype(np.float64) for name in ("target", "stiffness", "damping"))))
        world.step(round(STREAM_PERIOD / PHYSICS_STEP))
    return Simulated(rows["time"] - flight.rows["time"][0], np.array(angles), np.array(places))


def flight_summary(flight: Flight, simulated: Simulated | None, robot: Robot) -> list[str]:
    rows, late = flight.rows, 1000 * flight.rows["late"]
    gaps = 1000 * np.diff(rows["time"])
    worst = float(gaps.max()) if len(gaps) else 0.0
    lines = [
        f"{len(rows)} commands in {flight.time[-1]:.1f} s; {flight.about.get('policy', '')} {flight.about.get('script', '')}",
        *(f"{at - rows['time'][0]:8.3f} s  {text}" for at, text in flight.events),
        f"lateness: median {np.median(late):.2f} ms, 99% below {np.percentile(late, 99):.2f} ms, at worst {late.max():.2f} ms",
        f"longest gap between commands: {worst:.2f} ms",
        f"fastest joint: {_share(rows['joint_velocities'], robot.speed_limit):.2f} of its rated speed",
        f"strongest motor: {_share(rows['torques'], robot.torque_limit):.2f} of its peak torque",
        f"poses: {int(rows['pose_count'][-1])} received, {int(rows['pose_rejected'][-1])} rejected",
    ]
    if simulated is not None:
        off = joint_difference(flight, simulated)
        lines.append(
            f"same commands in the simulator: joint angles differ by {np.degrees(off):.1f} degrees (RMS over {COMPARED:g} s)"
        )
    return lines


def joint_difference(flight: Flight, simulated: Simulated) -> float:
    """Return the RMS difference of joint angles between log and simulator, rad, over the first COMPARED seconds."""
    count = int((simulated.time - simulated.time[0] <= COMPARED).sum())
    start = int(np.searchsorted(flight.time, simulated.time[0]))
    logged = flight.rows["joint_angles"][start : start + count]
    return float(np.sqrt(np.mean((logged - simulated.joint_angles[:count]) ** 2)))


def _share(values: Floats, limits: Floats) -> float:
    return float((np.abs(values) / limits).max())


def flight_figure(flight: Flight, simulated: Simulated | None, robot: Robot) -> Any:
    """Return a figure for `save_figure`."""
    rows, t = flight.rows, flight.time
    with styled_figure(12.0, 11.0) as figure:
        grid = figure.add_gridspec(6, 2, width_ratios=(2.4, 1.0))
        axes = [figure.add_subplot(grid[0, 0])]
        axes += [figure.add_subplot(grid[row, 0], sharex=axes[0]) for row in range(1, 6)]
        late, height, speed, torque, ages, joint = axes
        late.plot(t, 1000 * rows["late"], color=BLUE, linewidth=0.8)
        late.set(title="lateness of commands", ylabel="ms")
        height.plot(t, rows["base_position"][:, 2], color=BLUE)
        height.plot(t, rows["pose_position"][:, 2], color=SOFT, linewidth=0.6)
        height.set(title="base height, estimated and captured", ylabel="m")
        speed.plot(t, (np.abs(rows["joint_velocities"]) / robot.speed_limit).max(axis=1), color=BLUE, linewidth=0.8)
        speed.set(title="fastest joint", ylabel="share of rated speed")
        torque.plot(t, (np.abs(rows["torques"]) / robot.torque_limit).max(axis=1), color=ORANGE, linewidth=0.8)
        torque.set(title="strongest motor", ylabel="share of peak torque")
        ages.plot(t, 1000 * rows["state_age"], color=BLUE, linewidth=0.8, label="low state")
        ages.plot(t, np.minimum(1000 * rows["pose_age"], 400.0), color=ORANGE, linewidth=0.8, label="accepted pose")
        ages.legend(loc="upper right")
        ages.set(title="age of the newest low state and pose", ylabel="ms")
        joint.plot(t, rows["joint_angles"][:, 1], color=BLUE, linewidth=1.0, label="logged")
        joint.plot(t, rows["target"][:, 1], color=SOFT, linewidth=0.6, label="target")
        if simulated is not None:
            joint.plot(simulated.time, simulated.joint_angles[:, 1], color=ORANGE, linewidth=0.8, label="simulated")
        joint.legend(loc="upper right")
        joint.set(title=robot.joint_names[1], ylabel="rad", xlabel="s")
        for axis in axes:
            _mark(axis, flight)
        _draw_path(figure.add_subplot(grid[:3, 1]), flight, simulated)
        histogram = figure.add_subplot(grid[3:5, 1])
        histogram.hist(1000 * rows["late"], bins=60, log=True, color=BLUE)
        histogram.set(title="lateness of commands", xlabel="ms", ylabel="commands")
        legend = figure.add_subplot(grid[5, 1])
        legend.axis("off")
        for state, colour in zip(DeployState, STATE_COLOURS, strict=True):
            legend.fill_between([], [], color=colour, label=state.value)
        legend.plot([], [], color=RED, label="stopped by a fault")
        legend.legend(loc="center", ncols=2)
        return figure


def _mark(axes: Any, flight: Flight) -> None:
    """Shade the states and mark faults with a red line."""
    states, t = flight.rows["state"], flight.time
    edges = np.flatnonzero(np.diff(states)) + 1
    for begin, end in zip([0, *edges], [*edges, len(states)], strict=True):
        axes.axvspan(t[begin], t[end - 1], color=STATE_COLOURS[states[begin]], alpha=0.6, linewidth=0)
    for at, text in flight.events:
        if " -> " in text and ": " in text:
            axes.axvline(at - flight.rows["time"][0], color=RED, linewidth=1.0)


def _draw_path(axes: Any, flight: Flight, simulated: Simulated | None) -> None:
    place = flight.rows["base_position"]
    axes.plot(place[:, 0], place[:, 1], color=BLUE, label="estimated")
    if simulated is not None:
        axes.plot(simulated.position[:, 0], simulated.position[:, 1], color=ORANGE, label="simulated")
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(loc="best")
    axes.set(title="path, top view", xlabel="x, m", ylabel="y, m")


def show(flight: Flight, robot: Robot, viewer: str) -> None:
    """Show the logged motion once, in real time."""
    from contextlib import ExitStack

    from keystride.deploy.sim.robot import VIEWER_FRAME, open_view

    world = SimulatedGo2(robot, posture="standing")
    rows = flight.rows[np.isfinite(flight.rows["base_position"]).all(axis=1)]
    with ExitStack() as stack:
        update = open_view(world.model, world.data, viewer, stack)
        begun = time.monotonic()
        while len(rows) and (now := time.monotonic() - begun) <= rows["time"][-1] - rows["time"][0]:
            row = rows[np.searchsorted(rows["time"], rows["time"][0] + now)]
            world.data.qpos[:3], world.data.qpos[3:7] = row["base_position"], row["base_orientation"]
            world.data.qpos[7:] = row["joint_angles"]
            mujoco.mj_forward(world.model, world.data)
            update()
            time.sleep(VIEWER_FRAME)
