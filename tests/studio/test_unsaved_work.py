"""Work is never lost: not to a bad network, a restarted server, another file, another tab or another person."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keystride.keyframes.files import load_script

OTHER = "version: 1\nkeyframes:\n  - time: 1.5  # late\n    yaw: 10\n"


@pytest.fixture
def server(make_server: Any, tmp_path: Path) -> Iterator[Any]:
    server = make_server(tmp_path)
    yield server
    server.check()
    server.stop()


def test_a_lost_connection_does_not_repeat_a_save(served: Any, open_page: Any, relay: Any):
    line = relay(served)
    page = open_page(re.sub(r":(\d+)", f":{line.port}", served.url, count=1))
    (served.folder / "blip.yaml").write_text(OTHER)
    open_file(page, "blip.yaml")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 2")
    page.press("Control+s")
    page.wait_for_script("!script.unsaved")
    page.tab.get_by_label("ask for pitch").check()  # through the panel, which has its own way to the server
    page.wait_for_marks("marks[1].parts[2]")
    saved, session = (served.folder / "blip.yaml").read_bytes(), page.now()["session"]
    line.cut()
    page.wait_for_now(f"now.session !== {session!r}")
    page.wait_for_marks("marks.length === 2 && marks[1].parts[2]")
    page.press("Control+d")  # after whatever was sent again
    page.wait_for_marks("marks.length === 3")
    assert (served.folder / "blip.yaml").read_bytes() == saved
    assert page.script()["name"] == "blip.yaml"
    page.press("Control+z")
    page.press("Control+z")
    page.wait_for_marks("marks.length === 2 && !marks[1].parts[2]")


def test_a_restart_of_the_server_gives_the_draft_back_with_its_history(server: Any, open_page: Any):
    page = open_page(server.url)
    page.press("ArrowDown")
    page.press("Delete")
    page.wait_for_marks("marks.length === 1")
    page.press("Control+d")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    server.stop(signal.SIGKILL)  # without a chance to save anything: what the page shows, the browser has
    page.tab.locator("#ks-away").wait_for(state="visible")
    assert page.tab.locator("#ks-away").bounding_box()["width"] == page.tab.viewport_size["width"]
    page.press("Control+d")  # goes nowhere
    assert page.tab.locator("#ks-dock").get_attribute("inert") is not None
    server.start()
    page.tab.goto(server.url)  # its address has another token
    page.wait_until("document.querySelector('#ks-script')?.textContent")
    page.wait_for_marks("marks.length === 3")
    assert page.script()["unsaved"]
    for count in (2, 1, 2):
        page.press("Control+z")
        page.wait_for_marks(f"marks.length === {count}")
    assert len(load_script(server.script).keyframes) == 2
    page.press("Control+Shift+Z")
    page.wait_for_marks("marks.length === 1")
    server.check()


def test_an_unsaved_draft_is_also_on_disk(server: Any, open_page: Any):
    page = open_page(server.url)
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    server.stop()  # as a shutdown of the computer does it
    page.tab.close()
    server.start()
    other = open_page(server.url)  # another browser, which knows nothing of it
    other.open_panel("Files")
    other.tab.get_by_label("unsaved drafts").click()
    other.tab.get_by_role("option", name=re.compile(r"start\.yaml")).click()
    other.wait_for_marks("marks.length === 3")
    assert other.script()["unsaved"]
    other.press("Control+s")
    other.wait_for_script("!script.unsaved")
    assert len(load_script(server.script).keyframes) == 3


def test_undo_returns_to_the_other_file_and_to_its_name(page: Any, served: Any):
    (served.folder / "walk.yaml").write_text(OTHER)
    open_file(page, "walk.yaml")
    page.press("Control+z")
    page.wait_for_script("script.marks.length === 2 && script.name === 'start.yaml'")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.press("Control+s")
    page.wait_for_script("!script.unsaved")
    assert (served.folder / "walk.yaml").read_text() == OTHER
    assert len(load_script(served.script).keyframes) == 3
    page.press("Control+z")
    page.press("Control+s")
    page.wait_for_script("!script.unsaved && script.marks.length === 2")


def test_the_disk_is_read_when_a_page_opens_and_not_overwritten_unseen(page: Any, served: Any, open_page: Any):
    path = served.folder / "start.yaml"
    original = path.read_text()
    newer = original + "  - time: 2.0  # by hand\n    yaw: 20\n"
    path.write_text(newer)
    fresh = open_page(served.url)
    fresh.wait_for_marks("marks.length === 3")
    page.press("Delete")  # the older page, which has not seen it
    page.wait_for_marks("marks.length === 1")
    page.press("Control+s")
    question = page.tab.get_by_role("dialog").filter(has_text="changed on disk")
    question.wait_for()
    assert path.read_text() == newer
    page.press("Escape")
    question.wait_for(state="hidden")
    assert path.read_text() == newer
    page.press("Control+s")
    question.get_by_role("button", name="Overwrite").click()
    page.wait_for_script("!script.unsaved")
    assert len(load_script(path).keyframes) == 1
    fresh.press("Control+d")  # two people, one file
    fresh.wait_for_marks("marks.length === 4")
    fresh.press("Control+s")
    question = fresh.tab.get_by_role("dialog").filter(has_text="changed on disk")
    question.get_by_role("button", name="Open the file").click()
    fresh.wait_for_marks("marks.length === 1")
    path.write_text(original)


def test_save_as_asks_before_it_replaces_and_saving_keeps_comments(page: Any, served: Any):
    path = served.folder / "commented.yaml"
    path.write_text("# my show\n" + OTHER)
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.open_panel("Files")
    page.tab.locator("input[value='start.yaml']").last.fill("commented.yaml")
    page.tab.get_by_role("button", name="Save", exact=True).click()
    question = page.tab.get_by_role("dialog").filter(has_text="exists already")
    question.get_by_role("button", name="Cancel").click()
    assert path.read_text() == "# my show\n" + OTHER
    open_file(page, "commented.yaml")
    page.wait_for_marks("marks.length === 1")
    page.press(".")
    page.wait_for_marks("marks[0].time === 1.52")
    page.press("Control+s")
    page.wait_for_script("!script.unsaved")
    assert path.read_text().split() == ("# my show\n" + OTHER.replace("1.5 ", "1.52 ")).split()


def test_closing_a_tab_with_unsaved_work_asks(page: Any):
    page.press("Control+d")
    page.wait_for_script("script.unsaved")
    page.tab.close(run_before_unload=True)
    page.tab.wait_for_event("close") if not page.tab.is_closed() else None
    assert page.dialogs == ["beforeunload"]


def test_the_list_of_files_is_fresh_and_the_open_one_can_be_reverted(page: Any, served: Any):
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.open_panel("Files")
    (served.folder / "late.yaml").write_text(OTHER)
    page.tab.get_by_role("button", name="Revert").click()
    page.wait_for_script("script.marks.length === 2 && !script.unsaved")
    page.press("Control+z")
    page.wait_for_marks("marks.length === 3")
    open_file(page, "late.yaml")
    page.wait_for_marks("marks.length === 1")


def test_a_reload_keeps_work_settings_and_play_head(page: Any):
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.press("l")
    page.press("]")
    page.seek(0.6)
    page.open_panel("Stage")
    friction = page.tab.locator("xpath=//*[text()='ground friction']/ancestor::*[.//input][1]//input").last
    friction.fill("0.45")
    friction.press("Enter")
    page.wait_for_now("now.loop && now.speed === 2 && Math.abs(now.head - 0.6) < 0.05 && now.friction === 0.45")
    page.tab.reload()
    page.wait_until("document.querySelector('#ks-script')?.textContent")
    page.wait_for_marks("marks.length === 3")
    page.wait_for_now("now.loop && now.speed === 2 && Math.abs(now.head - 0.6) < 0.05 && now.friction === 0.45")
    page.press("Control+z")
    page.wait_for_marks("marks.length === 2")


def open_file(page: Any, name: str) -> None:
    page.open_panel("Files")
    page.tab.get_by_label("open", exact=True).click()
    page.tab.get_by_role("option", name=name).click()
    page.wait_for_script(f"script.name === {name!r}")
    page.open_panel("Keyframe")
