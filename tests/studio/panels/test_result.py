"""The Result panel: tables and drawings of a pass, and both in a browser."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from keystride.evaluation.recording import Recording, play_script
from keystride.keyframes.script import Keyframe, Script
from keystride.robot.go2 import GO2
from keystride.studio.panels.result import charts, headline, report_page, table
from keystride.studio.playback.controllers import StandStill

SCRIPT = Script(
    keyframes=(
        Keyframe(time=0.2, position=(0.0, 0.0, 0.333), roll=0.0, pitch=0.0, yaw=0.0, posture="stand"),
        Keyframe(time=0.4, yaw=350.0, label="<b>round</b>"),
    )
)


@pytest.fixture(scope="module")
def recording() -> Recording:
    return play_script(StandStill(GO2), GO2, SCRIPT, title="a <title>", policy="nobody")


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def test_each_keyframe_has_a_row_with_dashes_for_open_components(recording: Recording):
    _, first, second = cells(table(recording))
    assert first[:2] == ["1", "0.20 s"]
    assert first[2].endswith(" m")
    assert first[-1] == "met"
    assert second[2:5] == ["-", "-", "-"]
    assert second[5] == "10.0°"
    assert headline(recording) == "2 of 2 keyframes met"


def test_every_drawing_is_sound_xml(recording: Recording):
    drawings = charts(recording)
    assert len(drawings) == 8
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_charts_take_every_colour_from_the_page(recording: Recording):
    """So that a dark page has dark charts."""
    for drawing in charts(recording):
        assert "var(--ks-" in drawing
        assert re.findall(r"#[0-9a-f]{6}\b", drawing) == []


def test_the_page_stands_alone_and_nothing_in_it_is_markup_that_was_a_name(recording: Recording):
    html = report_page(recording)
    assert "a &lt;title&gt;" in html
    assert "http" not in html.replace("http://www.w3.org", "")
    assert html.count("<svg") == 8


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


def test_a_pass_is_played_to_its_end_and_errors_appear(page: Any):
    page.press("]")
    page.press("Space")
    page.wait_for_now("now.playing")
    page.wait_for_now("!now.playing && now.head === now.end")
    assert [mark["state"] for mark in page.script()["marks"]] == ["met", "missed"]
    page.open_panel("Result")
    rows = page.tab.locator(".ks-errors tr")
    assert rows.count() == 3
    assert "missed" in rows.nth(2).inner_text()
    page.tab.locator("svg text", has_text="path from above").wait_for()
    page.seek(0.5)
    page.wait_for_now("Math.abs(now.head - 0.5) < 0.05")
    assert page.wait_for_marks("marks[1].state === 'active'")[0]["state"] == "met"
    with page.tab.expect_download() as download:
        page.tab.get_by_role("button", name="Replay").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<!doctype html>")
