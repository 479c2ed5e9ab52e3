from pathlib import Path

import pytest

from keystride.deploy.fault_checks import check_table
from keystride.deploy.states import DeployState, Event, after, transition_table

DOCS = Path(__file__).parents[2] / "docs" / "deploy.md"

# Written out by hand: state by row, event by column. A dot changes nothing.
TABLE = """
              STAND        UP     START    FINISH    STOP      DOWN     FAULT
IDLE          STANDING_UP  .      .        .         DAMPING   .        DAMPING
STANDING_UP   .            READY  .        .         STOPPING  .        DAMPING
READY         .            .      RUNNING  .         STOPPING  .        DAMPING
RUNNING       .            .      .        STOPPING  STOPPING  .        DAMPING
STOPPING      .            .      .        .         .         DAMPING  DAMPING
DAMPING       .            .      .        .         .         .        .
"""


def rows():
    header, *lines = (line.split() for line in TABLE.strip().splitlines())
    for name, *cells in lines:
        for event, cell in zip(header, cells, strict=True):
            yield DeployState[name], Event[event], DeployState[name if cell == "." else cell]


def test_the_table_is_complete():
    assert {(state, event) for state, event, _ in rows()} == {
        (state, event) for state in DeployState for event in Event
    }


@pytest.mark.parametrize(("state", "event", "expected"), list(rows()))
def test_every_move(state, event, expected):
    assert after(state, event) is expected


def test_a_fault_ends_in_damping_from_everywhere():
    assert {after(state, Event.FAULT) for state in DeployState} == {DeployState.DAMPING}


def test_running_is_reached_only_by_standing_up_first():
    ways = {
        state
        for state in DeployState
        for event in Event
        if after(state, event) is DeployState.RUNNING and state is not DeployState.RUNNING
    }
    assert ways == {DeployState.READY}


def test_the_documentation_has_the_tables():
    text = DOCS.read_text()
    assert transition_table() in text
    assert check_table() in text
