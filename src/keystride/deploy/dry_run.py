"""What would be sent: the whole deployment, played against a simulation in this process."""

import numpy as np

from keystride.deploy.codec import CHECK_MODE, RELEASE_MODE, STAND_DOWN, encode_command
from keystride.deploy.control import STREAM_PERIOD
from keystride.deploy.launch import Plan, checked_script, open_player, say
from keystride.deploy.layout import LOW_CMD, motor_order, seal, to_wire
from keystride.deploy.rehearsal import Rehearsal, rehearse
from keystride.deploy.states import Event, State
from keystride.robot.description import Robot

EVERY = 0.5  # s between the commands that are shown
LONGEST = 3600.0


def dry_run(plan: Plan, robot: Robot) -> str:
    """Prints; returns why it stopped, empty when the script came to its end."""
    script = checked_script(plan.script, doubtful=plan.doubtful)
    rehearsal = rehearse(robot, open_player(plan.policy, robot, "lo"), script)
    say(f"on {plan.interface}, domain {plan.domain}, with poses from {plan.pose}; nothing is sent now")
    say(f"rt/api/motion_switcher/request: {CHECK_MODE}, and while a motion service is active")
    say(f"rt/api/sport/request: {STAND_DOWN}, rt/api/motion_switcher/request: {RELEASE_MODE}")
    say(f"rt/lowcmd every {1000 * STREAM_PERIOD:g} ms; motors in the order of the robot's board, rad:")
    _play(rehearsal)
    say(f"ends in {rehearsal.deployment.safety.state.value} after {rehearsal.now:.1f} s")
    return rehearsal.deployment.safety.reason


def _play(rehearsal: Rehearsal) -> None:
    deployment, told = rehearsal.deployment, 0
    deployment.ask(Event.STAND)
    while deployment.safety.state is not State.DAMPING and rehearsal.now < LONGEST:
        rehearsal.step()
        if deployment.safety.state is State.READY:
            deployment.ask(Event.START)
        for event in rehearsal.events[told:]:
            say(f"{rehearsal.now:7.3f} s  {event}")
        changed, told = told < len(rehearsal.events), len(rehearsal.events)
        if changed or rehearsal.tick % round(EVERY / STREAM_PERIOD) == 0:
            say(_line(rehearsal))


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
