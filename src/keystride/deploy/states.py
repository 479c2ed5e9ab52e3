"""The states of a deployment and the transitions between them, in one table that the documentation prints as well."""

from enum import Enum


class DeployState(Enum):
    IDLE = "idle"  # no torque
    STANDING_UP = "standing up"  # along a ramp from the present joint angles
    READY = "ready"  # standing, waiting for the operator
    RUNNING = "running"  # following the policy's targets
    STOPPING = "stopping"  # along a ramp to the stance, then down
    DAMPING = "damping"  # no stiffness, joints braked; the final state


class Event(Enum):
    STAND = "stand"  # the operator asks to stand up
    UP = "up"  # the ramp to the stance is finished
    START = "start"  # the operator asks to play
    FINISH = "finish"  # the script has been played
    STOP = "stop"  # the operator, or a fault that still allows a controlled way down
    DOWN = "down"  # the ramp to the ground is finished
    FAULT = "fault"  # an emergency stop, or any other fault


# An event without an entry changes nothing.
TRANSITIONS: dict[tuple[DeployState, Event], DeployState] = {
    (DeployState.IDLE, Event.STAND): DeployState.STANDING_UP,
    (DeployState.STANDING_UP, Event.UP): DeployState.READY,
    (DeployState.READY, Event.START): DeployState.RUNNING,
    (DeployState.RUNNING, Event.FINISH): DeployState.STOPPING,
    (DeployState.STANDING_UP, Event.STOP): DeployState.STOPPING,
    (DeployState.READY, Event.STOP): DeployState.STOPPING,
    (DeployState.RUNNING, Event.STOP): DeployState.STOPPING,
    (DeployState.IDLE, Event.STOP): DeployState.DAMPING,
    (DeployState.STOPPING, Event.DOWN): DeployState.DAMPING,
    **{(state, Event.FAULT): DeployState.DAMPING for state in DeployState},
}


def after(state: DeployState, event: Event) -> DeployState:
    """Return the state that follows an event."""
    return TRANSITIONS.get((state, event), state)


def transition_table() -> str:
    """Return a Markdown table with a row per state and a column per event; a dot where nothing changes."""
    rows = [["state", *(event.value for event in Event)], ["---"] * (len(Event) + 1)]
    for state in DeployState:
        cells = (after(state, event) for event in Event)
        rows.append([state.value, *("." if cell is state else cell.value for cell in cells)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
