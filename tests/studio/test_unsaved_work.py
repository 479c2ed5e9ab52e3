"""Work is never lost: not to a bad network, a restarted server, another file, another tab or another person."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keystride.keyframes.files import load_script
from keystride.keyframes.script import Keyframe, Script
from keystride.keyframes.stage import Obstacle, Stage
from keystride.robot.go2 import GO2
from keystride.studio.document import draft as drafts
from keystride.studio.document.draft import Draft
from keystride.studio.document.history import Document
from keystride.studio.unsaved_work import (
    CAPACITY,
    FOLDER,
    MAX_CHARACTERS,
    DraftsFolder,
    StorageError,
    TabRestore,
    Work,
    dump,
    load_document,
    load_latest,
)


def edited() -> Document:
    document = Document(
        drafts.add(Draft(GO2), Keyframe(time=1.0, position=(0.5, 0.0), posture="sit")), "a.yaml", "digest"
    )
    document.edit(drafts.add(document.draft, Keyframe(time=2.0, yaw=30.0, label="turn")), selection=[2])
    document.open(drafts.add(Draft(GO2), Keyframe(time=3.0, posture=(0.0, 45.0, -90.0) * 4)), "b.yaml")
    document.edit(drafts.retime(document.draft, 1, 4.0))
    document.undo()
    return document


def test_everything_comes_back():
    document = edited()
    restored, settings = load_document(dump(document, {"speed": 2.0}), GO2)
    assert settings == {"speed": 2.0}
    assert restored.files == document.files
    for travel in (Document.redo, Document.undo, Document.undo, Document.undo, Document.undo):
        assert (restored.now, restored.unsaved) == (document.now, document.unsaved)
        assert travel(restored) == travel(document)


def test_a_long_history_is_cut_to_size():
    document = Document(drafts.add(Draft(GO2), Keyframe(time=1.0, posture=(0.0, 45.0, -90.0) * 4)))
    for i in range(3000):
        document.edit(drafts.change(document.draft, 1, label=f"{i:080d}"))
    text = dump(document)
    assert len(text) <= MAX_CHARACTERS
    restored, _ = load_document(text, GO2)
    assert restored.draft == document.draft
    assert restored.can_undo


@pytest.mark.parametrize("place", ["now", "past", "marks", "files", "format", "settings"])
def test_what_misses_a_part_is_refused(place: str):
    stored = json.loads(dump(edited()))
    del stored[place]
    with pytest.raises(StorageError):
        load_document(json.dumps(stored), GO2)


@pytest.mark.parametrize("change", [{"rows": [99]}, {"rows": [0, 0]}, {"angles": "turns"}, {"next": 1}, {"rows": "x"}])
def test_what_is_not_a_draft_is_refused(change: dict[str, object]):
    stored = json.loads(dump(edited()))
    stored["now"] |= change
    with pytest.raises(StorageError):
        load_document(json.dumps(stored), GO2)


@pytest.mark.parametrize("text", ["", "null", "[]", "5", '{"format": 1}'])
def test_nonsense_is_refused(text: str):
    with pytest.raises(StorageError):
        load_document(text, GO2)


def test_the_latest_copy_goes_on_where_the_whole_one_was_stored():
    document = edited()
    whole = dump(document)
    document.edit(drafts.retime(document.draft, 1, 5.0), gesture="drag")
    step = dump(document)
    document.edit(drafts.retime(document.draft, 1, 6.0), gesture="drag")  # the same step of the history
    latest = dump(document, steps=0)
    restored, _ = load_latest(step, latest, GO2)
    assert restored.now == document.now
    assert list(restored.past) == list(document.past)
    assert (
        load_latest(whole, latest, GO2)[0].now == load_document(whole, GO2)[0].now
    )  # another step: the copies do not fit together
    assert load_latest("", latest, GO2)[0].now == document.now
    with pytest.raises(StorageError):
        load_latest("", "", GO2)


def test_stages_come_back_each_with_its_script():
    stage = Stage(floor=((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)), obstacles=(Obstacle(center=(5.0, 5.0), radius=0.5),))
    script = Script(stage=stage, keyframes=(Keyframe(time=1.0, yaw=0.0),))
    document = Document(drafts.from_script(script, GO2), "a.yaml")
    document.edit(drafts.retime(document.draft, 1, 2.0))
    document.open(drafts.add(Draft(GO2), Keyframe(time=3.0, yaw=1.0)), "plain.yaml")
    restored, _ = load_document(dump(document), GO2)
    assert (restored.draft.stage, restored.draft.version) == (None, 1)
    assert restored.undo()
    assert restored.now == document.past[-1]
    assert (restored.draft.stage, restored.draft.version) == (stage, 2)


def nothing() -> Work:
    raise AssertionError("ended without a reason")


def test_a_tab_takes_its_work_back_once():
    tabs, work = TabRestore(), Work(Document(Draft(GO2)))
    assert tabs.enter("tab", nothing) is None
    assert tabs.open_tabs == {"tab"}
    tabs.exit("tab", nothing, work)
    assert tabs.open_tabs == frozenset()
    assert tabs.enter("tab", nothing) is work
    tabs.exit("other", nothing, work)
    assert tabs.open_tabs == {"tab"}


def test_a_session_that_has_not_noticed_the_end_of_its_connection_is_ended():
    tabs, work = TabRestore(), Work(Document(Draft(GO2)))

    def leave() -> Work:
        return work

    tabs.enter("tab", leave)
    assert tabs.enter("tab", nothing) is work
    tabs.exit("tab", leave, Work(Document(Draft(GO2))))  # it notices at last
    assert tabs.open_tabs == {"tab"}


def test_the_work_of_many_tabs_is_kept_but_not_of_all():
    tabs = TabRestore()
    for number in range(CAPACITY + 5):
        tabs.enter(str(number), nothing)
        tabs.exit(str(number), nothing, Work(Document(Draft(GO2))))
    assert tabs.enter("0", nothing) is None
    assert tabs.enter(str(CAPACITY + 4), nothing) is not None


def test_a_session_that_enters_twice_is_not_ended_by_itself():
    tabs = TabRestore()
    tabs.enter("tab", nothing)
    assert tabs.enter("tab", nothing) is None
    assert tabs.open_tabs == {"tab"}


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


def test_a_server_for_another_script_shows_that_script(server: Any, open_page: Any):
    """At the same port, in the same tab: the work of the other one is not shown as if it belonged here, and not lost."""
    page, first = open_page(server.url), server.script
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.press("Control+z")
    page.wait_for_script("!script.unsaved")
    other = server.folder / "elsewhere" / "other.yaml"
    other.parent.mkdir()
    other.write_text(OTHER)
    for unsaved in (False, True):
        server.stop()
        server.script = other
        server.start()
        page.tab.goto(server.url)
        page.wait_for_script("script.name === 'other.yaml' && script.marks.length === 1 && !script.unsaved")
        page.press("Control+s")
        page.open_panel("Files")
        assert [path.name for path in other.parent.glob("*.yaml")] == ["other.yaml"]
        offered = page.tab.get_by_label("unsaved drafts")
        if not unsaved:
            assert not offered.is_visible()
            server.stop()
            server.script = first
            server.start()
            page.tab.goto(server.url)
            page.wait_for_script("script.name === 'start.yaml'")
            page.press("Control+d")
            page.wait_for_marks("marks.length === 3")
            page.wait_for_script("script.unsaved")
    offered.click()
    page.tab.get_by_role("option", name=re.compile(r"start\.yaml")).click()
    page.wait_for_script("script.marks.length === 3 && script.unsaved")
    server.check()


def test_drafts_with_the_same_title_are_both_offered(tmp_path: Path):
    drafts_folder = DraftsFolder(tmp_path, GO2)
    for tab in ("one", "two", "three"):
        drafts_folder.write(tab, dump(edited()))
    assert sorted(drafts_folder.titles(frozenset({"three"})).values()) == ["one", "two"]


def test_drafts_that_are_pipes_or_too_large_are_left_out(tmp_path: Path):
    folder = DraftsFolder(tmp_path, GO2)
    folder.write("good", dump(edited()))
    os.mkfifo(tmp_path / FOLDER / "pipe.json")
    (tmp_path / FOLDER / "large.json").write_text(dump(edited()) + " " * (5 << 20))
    assert [draft.tab for draft in folder.entries()] == ["good"]


def test_drafts_are_kept_beside_files_that_are_none(tmp_path: Path):
    folder = DraftsFolder(tmp_path, GO2)
    folder.write("tab", dump(edited()))
    (tmp_path / FOLDER / "gone.json").symlink_to("nowhere")
    (tmp_path / FOLDER / ".tab.json.1-0123abcd.part.json").write_text(dump(edited()))  # of a process that still runs
    for number in range(60):
        (tmp_path / FOLDER / f"notes {number}.json").write_text("{}")
    folder.write("other", dump(edited()))
    assert {entry.tab for entry in folder.entries()} == {"tab", "other"}
    assert len(list((tmp_path / FOLDER).glob("notes *.json"))) == 60


def test_a_link_in_place_of_the_folder_of_drafts_is_not_followed(tmp_path: Path):
    scripts, other = tmp_path / "scripts", tmp_path / "other"
    scripts.mkdir()
    other.mkdir()
    (scripts / FOLDER).symlink_to(other, target_is_directory=True)
    for number in range(60):
        (other / f"{number}.json").write_text("{}")
    folder = DraftsFolder(scripts, GO2)
    with pytest.raises(FileExistsError, match="link"):
        folder.write("tab", dump(edited()))
    folder.delete("7")
    assert folder.entries() == ()
    assert len(list(other.iterdir())) == 60


def test_the_page_says_if_it_cannot_store_the_work(server: Any, open_page: Any):
    page = open_page(server.url)
    fill = """() => { let size = 4e6;
      while (size >= 1) { try { localStorage[`full${Math.random()}`] = "x".repeat(size); } catch { size = Math.floor(size / 2); } } }"""
    for count in (3, 4):  # the first time, the copy with the history makes room for the latest state
        page.tab.evaluate(fill)
        page.press("Control+d")
        page.wait_for_marks(f"marks.length === {count}")
    page.tab.locator(".ks-full").wait_for(state="visible")
    server.stop()
    page.tab.locator("#ks-away", has_text="no space to store your work").wait_for(state="visible")
    server.start()


def test_an_uploaded_script_is_unsaved(page: Any, tmp_path: Path):
    path = tmp_path / "up.yaml"
    path.write_text(OTHER)
    page.open_panel("Files")
    page.tab.locator("input[name='file']").set_input_files(path)
    page.wait_for_script("script.name === 'up.yaml' && script.unsaved")


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
    question = page.tab.get_by_role("dialog").filter(has_text="already exists")
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


def test_a_reload_while_playing_keeps_play_head_shoves_and_snapping(page: Any):
    page.tab.get_by_label("Snap to").select_option("0.5")
    page.seek(0.3)
    page.wait_for_now("Math.abs(now.head - 0.3) < 0.05")
    page.press("p")
    page.wait_for_now("now.shoves.length === 1")
    page.press("[")
    page.press("[")
    page.press("[")
    page.press("Space")
    page.wait_for_now("now.playing && now.head > 0.5")
    page.tab.reload()
    page.wait_until("document.querySelector('#ks-script')?.textContent")
    page.wait_for_now("now.head > 0.5 && now.shoves.length === 1 && Math.abs(now.shoves[0] - 0.3) < 0.05")
    assert page.tab.get_by_label("Snap to").input_value() == "0.5"


def open_file(page: Any, name: str) -> None:
    page.open_panel("Files")
    page.tab.get_by_label("open", exact=True).click()
    page.tab.get_by_role("option", name=name).click()
    page.wait_for_script(f"script.name === {name!r}")
    page.open_panel("Keyframe")
