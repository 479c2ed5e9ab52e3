"""The states of a deployment and the moves between them: one table, from which the documentation is printed too."""

from enum import Enum


class State(Enum):
    IDLE = "idle"  # no torque
    STANDING_UP = "standing up"  # along a ramp from wherever the joints are
    READY = "ready"  # standing, waiting for the operator
    RUNNING = "running"  # the policy's targets
    STOPPING = "stopping"  # along a ramp to the stance, then down
    DAMPING = "damping"  # no stiffness, joints braked; the end


class Event(Enum):
    STAND = "stand"  # the operator asks to stand up
    STOOD = "stood"  # the ramp to the stance is over
    START = "start"  # the operator asks to play
    FINISH = "finish"  # the script has been played
    STOP = "stop"  # the operator, or a fault that leaves a controlled way down
    LAIN = "lain"  # the ramp to the ground is over
    FAULT = "fault"  # an emergency stop, or a fault that does not


# What is not in the table changes nothing.
TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.IDLE, Event.STAND): State.STANDING_UP,
    (State.STANDING_UP, Event.STOOD): State.READY,
    (State.READY, Event.START): State.RUNNING,
    (State.RUNNING, Event.FINISH): State.STOPPING,
    (State.STANDING_UP, Event.STOP): State.STOPPING,
    (State.READY, Event.STOP): State.STOPPING,
    (State.RUNNING, Event.STOP): State.STOPPING,
    (State.IDLE, Event.STOP): State.DAMPING,
    (State.STOPPING, Event.LAIN): State.DAMPING,
    **{(state, Event.FAULT): State.DAMPING for state in State},
}


def after(state: State, event: Event) -> State:
    return TRANSITIONS.get((state, event), state)


def transition_table() -> str:
    """Markdown: a row a state, a column an event; a dot where nothing changes."""
    rows = [["state", *(event.value for event in Event)], ["---"] * (len(Event) + 1)]
    for state in State:
        cells = (after(state, event) for event in Event)
        rows.append([state.value, *("." if cell is state else cell.value for cell in cells)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
