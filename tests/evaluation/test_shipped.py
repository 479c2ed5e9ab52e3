"""The policies that ship, at work: they perform the examples without a fall and stay near the figures of their cards."""

import json
from pathlib import Path

import pytest

from keystride.evaluation.recording import play_script
from keystride.evaluation.results import Row
from keystride.evaluation.setting import Contender, Libraries, Setting
from keystride.evaluation.suites import anticipation, matching
from keystride.keyframes.files import load_script
from keystride.policy.bundle import FIGURES, SHIPPED, known
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
EPISODES = 64
MARGINS = {"distance_m": 0.05, "roll_deg": 3.0, "pitch_deg": 3.0, "yaw_deg": 5.0, "posture_deg": 3.0}

pytestmark = pytest.mark.skipif(not known(), reason="no policy ships yet")


@pytest.fixture(params=known() or ("none",))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_it_performs_the_examples_without_a_fall(name: str, script: Path) -> None:
    recording = play_script(Policy.load(name, robot=GO2), GO2, load_script(script), title=script.stem, policy=name)
    assert recording.fell_at is None


def test_it_stays_near_the_figures_of_its_card(name: str, libraries: Libraries) -> None:
    """On the scenarios that need no library; with fewer episodes than the card, hence the margins."""
    card = SHIPPED / name / FIGURES
    if not card.is_file():
        pytest.skip(f"{name} has no figures yet")
    written = {_key(row): row["mean"] for row in json.loads(card.read_text())["rows"]}
    setting = Setting(GO2, Contender(name, Policy.load(name, robot=GO2)), libraries, episodes=EPISODES)
    rows = [*matching(setting).rows, *anticipation(setting).rows]
    compared = [row for row in rows if row.metric in MARGINS and _key(row.as_dict()) in written]
    assert compared
    assert [_worse(row, written) for row in compared if _worse(row, written)] == []
    assert max(row.falls for row in compared) <= 0.02 * EPISODES + 1


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return row["suite"], row["scenario"], str(row["goal"]), row["metric"]


def _worse(row: Row, written: dict[tuple[object, ...], float]) -> str:
    most = written[_key(row.as_dict())] + MARGINS[row.metric]
    return f"{row.scenario} {row.goal} {row.metric}: {row.mean:.3f} > {most:.3f}" if row.mean > most else ""
