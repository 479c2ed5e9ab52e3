"""A dry run: the whole deployment, played against a simulation in this process; prints what would be sent."""

import numpy as np

from keystride.deploy.launch import Plan
from keystride.deploy.log.console import say
from keystride.deploy.pose.odometry import OdometryPoses
from keystride.deploy.preflight import checked_script, open_player, outside, try_player
from keystride.deploy.safety import STREAM_PERIOD
from keystride.deploy.sim.rehearsal import Drift, Rehearsal, rehearse
from keystride.deploy.states import Event, State
from keystride.deploy.unitree.codec import CHECK_MODE, RELEASE_MODE, STAND_DOWN, encode_command
from keystride.deploy.unitree.wire_format import LOW_CMD, motor_order, seal, to_wire
from keystride.robot.description import Robot

EVERY = 0.5  # s between the commands that are shown
LONGEST = 3600.0


def dry_run(plan: Plan, robot: Robot) -> bool:
    """Print what would be sent; return whether the script was played to its end."""
    script = checked_script(plan.script, doubtful=plan.doubtful)
    player = open_player(plan.policy, robot, "lo", inbetween=plan.inbetween)
    for line in outside(plan.script, player, script, allowed=plan.outside_training):
        say(f"warning: {line}")
    try_player(plan.policy, player, script, robot)
    rehearsal = rehearse(robot, player, script, poses=OdometryPoses() if plan.pose == "odometry" else None)
    say(f"on {plan.interface}, domain {plan.domain}, with poses from {plan.pose}; nothing is sent now")
    say(f"rt/api/motion_switcher/request: {CHECK_MODE}, and while a motion service is active")
    say(f"rt/api/sport/request: {STAND_DOWN}, rt/api/motion_switcher/request: {RELEASE_MODE}")
    say(f"rt/lowcmd every {1000 * STREAM_PERIOD:g} ms; motors in the order of the robot's board, rad:")
    drift = _play(rehearsal)
    say(
        f"leg odometry: {drift.walked:.2f} m walked, {drift.off:.3f} m off at the end, {drift.per_metre:.3f} m per metre"
    )
    say(f"ends in {rehearsal.deployment.safety.state.value} after {rehearsal.now:.1f} s")
    return rehearsal.deployment.safety.played


def _play(rehearsal: Rehearsal) -> Drift:
    deployment, printed = rehearsal.deployment, 0
    drift = Drift(rehearsal)
    deployment.ask(Event.STAND)
    while deployment.safety.state is not State.DAMPING and rehearsal.now < LONGEST:
        rehearsal.step()
        drift.follow()
        if deployment.safety.state is State.READY and rehearsal.tick % 100 == 0:
            deployment.ask(Event.START)
        for event in rehearsal.events[printed:]:
            say(f"{rehearsal.now:7.3f} s  {event}")
        changed, printed = printed < len(rehearsal.events), len(rehearsal.events)
        if changed or rehearsal.tick % round(EVERY / STREAM_PERIOD) == 0:
            say(_line(rehearsal))
    return drift


def _line(rehearsal: Rehearsal) -> str:
    command, robot = rehearsal.command, rehearsal.world.robot
    assert command is not None
    record = encode_command(robot, command)
    seal(record)
    order = motor_order(robot)
    gains = f"kp {command.stiffness[0]:g} kd {command.damping[0]:g}"
    angles = np.array2string(command.target[order], precision=2, suppress_small=True, max_line_width=200)
    shown = f"q {angles} " if command.stiffness.any() else ""
    size = len(to_wire(LOW_CMD, record))
    return f"{rehearsal.now:7.3f} s  {shown}{gains}  crc {int(record['crc']):08x}  {size} bytes"
