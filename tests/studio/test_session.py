"""A session of the studio in a real browser: keys, marks, play head, forecasts, phones and colours."""

import re
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keystride.studio.playback.forecast_process import MOST_PROCESSES


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


def test_the_page_shows_the_script_and_its_odds(page: Any):
    marks = page.wait_for_marks("marks.every((mark) => mark.odds !== null)")
    assert [mark["time"] for mark in marks] == [0.4, 0.8]
    assert [mark["label"] for mark in marks] == ["here", ""]
    assert [mark["odds"] for mark in marks] == [100, 0]  # nobody moves it
    assert page.tab.locator(".ks-mark").count() == 2
    assert page.tab.title() == "Keystride Studio"


def test_three_keyframes_are_added_undone_and_redone(page: Any):
    for count, seconds in enumerate((1.2, 1.6, 2.0), start=3):
        page.seek(seconds)
        page.wait_for_now(f"Math.abs(now.head - {seconds}) < 0.05")
        page.press("k")
        page.wait_for_marks(f"marks.length === {count}")
    times = [mark["time"] for mark in page.script()["marks"]]
    assert times[2:] == pytest.approx([1.2, 1.6, 2.0], abs=0.06)
    for count in (4, 3, 2):
        page.press("Control+z")
        page.wait_for_marks(f"marks.length === {count}")
    for count in (3, 4, 5):
        page.press("Control+Shift+Z")
        page.wait_for_marks(f"marks.length === {count}")
    assert [mark["time"] for mark in page.script()["marks"]] == times


def test_keys_duplicate_delete_and_select(page: Any):
    page.press("ArrowDown")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.press("Delete")
    page.wait_for_marks("marks.length === 2")
    page.press("Escape")
    page.wait_until("JSON.parse(document.getElementById('ks-script').textContent).selected === null")
    page.press("?")
    assert page.tab.locator("#ks-help[open]").is_visible()
    assert "play or pause" in page.tab.locator("#ks-help").inner_text()


def test_deleting_with_shift_closes_the_gap(page: Any):
    page.press("Shift+Delete")
    page.wait_for_marks("marks.length === 1 && marks[0].key === 2 && marks[0].time === 0.4")


def test_a_mark_is_dragged_in_time(page: Any):
    mark = page.tab.locator('.ks-mark[data-key="2"] .gem')
    mark.wait_for(state="visible")
    gem = mark.bounding_box()
    assert gem is not None
    x, y = gem["x"] + gem["width"] / 2, gem["y"] + gem["height"] / 2
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x + 60, y, steps=4)
    page.tab.mouse.move(x + 120, y, steps=4)
    page.tab.mouse.up()
    page.wait_for_marks("marks[1].time > 1.0")
    page.press("Control+z")
    page.wait_for_marks("marks[1].time === 0.8")


def test_two_users_do_not_see_each_other(page: Any, open_page: Any, served: Any):
    other = open_page(served.url, viewport={"width": 500, "height": 400})
    other.press("k")
    other.wait_for_marks("marks.length === 3")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 3")
    page.press("Control+d")
    page.wait_for_marks("marks.length === 4")
    assert len(other.script()["marks"]) == 3


def test_shortcuts_work_unless_text_is_typed(page: Any):
    """Space plays after a tick box was clicked, Ctrl Z undoes after a number was typed, Enter gives the keyboard back."""
    box = page.tab.get_by_label("ask for pitch")
    box.check()
    page.wait_for_marks("marks[0].parts[2]")
    page.press("Space")
    page.wait_for_now("now.playing")
    assert box.is_checked()
    page.press("Space")
    page.wait_for_now("!now.playing")
    page.press("Control+z")
    page.wait_for_marks("!marks[0].parts[2]")
    page.press("?")
    page.tab.locator("#ks-help[open]").wait_for()
    page.press("k")  # the list has the keyboard
    page.press("Escape")
    page.tab.locator("#ks-help[open]").wait_for(state="detached")
    assert len(page.script()["marks"]) == 2
    page.press("k")
    page.wait_for_marks("marks.length === 3")


def test_several_marks_are_selected_copied_and_deleted(page: Any):
    page.press("Control+a")
    page.wait_for_script("script.selection.length === 2")
    page.press("Control+c")
    page.seek(2.0)
    page.press("Control+v")
    page.wait_for_marks("marks.length === 4")
    assert page.script()["selection"] == [3, 4]
    page.tab.locator('.ks-mark[data-key="1"] .gem').click(modifiers=["Shift"])
    page.wait_for_script("script.selection.length === 3")
    page.tab.locator('.ks-mark[data-key="1"] .gem').click()  # without Shift or a drag: this one alone
    page.wait_for_script("script.selection.length === 1 && script.selected === 1")
    for key in (3, 4):
        page.tab.locator(f'.ks-mark[data-key="{key}"] .gem').click(modifiers=["Shift"])
    page.wait_for_script("script.selection.length === 3")
    page.press("Delete")
    page.wait_for_marks("marks.length === 1")
    page.press("Control+z")
    page.wait_for_marks("marks.length === 4")


PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 1}


def test_everything_is_in_reach_on_a_phone(served: Any, open_page: Any):
    page = open_page(served.url, **PHONE)
    out_of_reach = """() => [...document.querySelectorAll('#ks-dock button, #ks-dock select')].filter((button) => {
        const box = button.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
        return !button.contains(document.elementFromPoint(x, y)); }).map((button) => button.title)"""
    page.wait_until("!document.querySelector('#ks-dock').inert")
    assert page.tab.evaluate(out_of_reach) == []
    play = page.tab.locator("[data-do=toggle]")
    play.tap()
    page.wait_for_now("now.playing")
    play.tap()
    page.wait_for_now("!now.playing")
    for panel, button in (
        ("Stage", "Shove the robot"),
        ("Files", "New script"),
        ("Keyframe", "Put the feet on the ground"),
    ):
        page.tab.get_by_role("tab", name=panel).tap()
        page.tab.get_by_role("button", name=button, exact=True).tap(trial=True)  # scrolled to, and nothing lies over it
    page.tab.get_by_role("tab", name="Files").tap()
    page.tab.get_by_role("button", name="New script", exact=True).tap()
    page.wait_for_marks("marks.length === 0")


CLOSE = """version: 1
keyframes:
  - {time: 0.4, position: [0.0, 0.0], label: the first of three}
  - {time: 0.9, position: [0.8, 0.0]}
  - {time: 1.5, position: [0.0, 0.0], label: the last of the three}
"""
OVERLAPS = """() => {
  const shown = [...document.querySelectorAll('.ks-mark .name:not(:empty), .ks-mark .odds span, .ks-mark .dots i')].filter(
    (element) => element.getClientRects().length).map((element) => [element.closest('.ks-mark'), element.getBoundingClientRect()]);
  const view = document.getElementById('ks-view').getBoundingClientRect();
  return shown.flatMap(([mark, a], i) => shown.slice(i + 1).filter(([other, b]) => mark !== other &&
      a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map(() => `over another at ${a.left}`))
    .concat(shown.filter(([, a]) => a.bottom > view.bottom).map(([, a]) => `below the timeline at ${a.left}`)); }"""


def test_close_marks_keep_apart_and_show_what_is_missed(served: Any, open_page: Any):
    (served.folder / "close.yaml").write_text(CLOSE)
    page = open_page(served.url, **PHONE)
    page.open_panel("Files")
    page.tab.get_by_label("open", exact=True).click()
    page.tab.get_by_role("option", name="close.yaml").click()
    page.wait_for_script("script.name === 'close.yaml' && script.marks.every((mark) => mark.odds !== null)")
    page.tab.get_by_text("100%").first.wait_for()
    missed = page.tab.locator(".ks-mark").nth(1)
    for width in (390, 900):
        page.tab.set_viewport_size({"width": width, "height": 844})
        page.wait_until(f"document.getElementById('ks-view').clientWidth > {width} - 40")
        assert missed.locator(".odds", has_text=re.compile(r"^\s*0%")).is_visible()  # beside the mark that is selected
        assert page.tab.evaluate(OVERLAPS) == []


def test_one_click_does_what_the_forecast_suggests(served: Any, open_page: Any):
    (served.folder / "far.yaml").write_text("version: 1\nkeyframes:\n  - {time: 0.4, position: [0.3, 0.0], yaw: 0}\n")
    page = open_page(served.url)
    page.open_panel("Files")
    page.tab.get_by_label("open", exact=True).click()
    page.tab.get_by_role("option", name="far.yaml").click()
    page.wait_for_script("script.name === 'far.yaml' && script.tips")
    tips = page.tab.locator("#ks-tips")
    assert "reachable without its position" in tips.inner_text()
    above = "document.getElementById('ks-tips').getBoundingClientRect().bottom"
    assert page.tab.evaluate(f"{above} <= document.getElementById('ks-dock').getBoundingClientRect().top")
    mark = page.tab.locator(".ks-mark")
    assert mark.locator("i.over").count() == 1  # of the five components, the one that is missed
    assert re.search(r"position 0\.\d\d m over", mark.get_attribute("aria-label"))
    tips.get_by_role("button", name="Loosen").click()
    page.wait_for_marks("!marks[0].parts[0] && marks[0].parts[3]")
    page.wait_for_script("!script.tips && script.marks[0].odds === 100")
    page.press("Control+z")
    page.wait_for_script("script.marks[0].parts[0] && script.tips")
    tips.get_by_role("button", name="Shorten").click()
    page.wait_for_script("script.marks[0].parts[0] && !script.stale && script.marks[0].odds === 100")
    page.press("Control+z")
    page.wait_for_script("script.marks[0].odds === 0 && script.tips")
    page.tab.set_viewport_size({"width": 390, "height": 844})  # on a phone it leaves the panels free
    page.wait_until(f"{above} <= document.querySelector('.ks-sheet')?.getBoundingClientRect().top")


SIXTY = "version: 1\nkeyframes:\n" + "".join(f"  - {{time: {i}.0, yaw: 0, label: part {i}}}\n" for i in range(1, 61))
MISPLACED = """() => [...document.querySelectorAll('.ks-mark')].filter((mark) => {
  const gem = mark.querySelector('.gem').getBoundingClientRect();
  const x = gem.x + gem.width / 2, y = gem.y + gem.height / 2, reach = gem.width / 2 - 1;
  return [[0, 0], [reach, 0], [-reach, 0], [0, reach], [0, -reach]].some(([dx, dy]) =>
    document.elementFromPoint(x + dx, y + dy)?.closest('.ks-mark') !== mark); }).map((mark) => mark.dataset.key)"""


def open_script(page: Any, folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    page.open_panel("Files")
    page.tab.get_by_label("open", exact=True).click()
    page.tab.get_by_role("option", name=name).click()
    page.wait_for_script(f"script.name === '{name}'")
    page.open_panel("Keyframe")


def test_each_of_sixty_gems_can_be_clicked(served: Any, open_page: Any):
    page = open_page(served.url, viewport={"width": 1400, "height": 700})
    open_script(page, served.folder, "sixty.yaml", SIXTY)
    page.wait_until("document.querySelectorAll('.ks-mark').length === 60")
    assert page.tab.evaluate(MISPLACED) == []
    gem = page.tab.locator('.ks-mark[data-key="31"] .gem').bounding_box()
    page.tab.mouse.click(gem["x"] + 2, gem["y"] + gem["height"] / 2)  # its left corner
    page.wait_for_script("script.selected === 31")
    assert page.tab.evaluate(MISPLACED) == []


def test_the_progress_of_the_forecast_is_shown(page: Any):
    page.wait_for_script("!script.stale && script.progress === 1")
    page.tab.locator(".ks-progress").wait_for(state="detached")
    page.press(".")
    page.tab.locator(".ks-progress", has_text="forecast").wait_for()
    page.tab.locator(".ks-headline .ks-stale", has_text="of trials").wait_for()
    page.tab.locator(".ks-progress").wait_for(state="detached")
    page.tab.locator(".ks-headline .ks-stale").wait_for(state="detached")


def test_a_session_beyond_those_with_a_forecast_says_so_and_gets_one_later(page: Any, served: Any, open_page: Any):
    page.wait_for_script("!script.stale")  # the shared page has one of the processes
    others = [open_page(served.url) for _ in range(MOST_PROCESSES - 1)]
    for other in others:
        other.wait_for_script("!script.stale || script.queued")
    late = open_page(served.url)
    late.wait_for_script("script.queued")
    waits = late.tab.locator(".ks-progress", has_text="forecast waits for another tab to close")
    waits.wait_for()
    others[0].tab.close()
    late.wait_for_marks("marks.every((mark) => mark.odds !== null)")
    waits.wait_for(state="detached")


def test_a_long_script_fits_a_phone_and_its_timeline_can_be_zoomed(served: Any, open_page: Any):
    page = open_page(served.url, **PHONE)
    rows = """() => new Set([...document.querySelectorAll('.ks-bar button, .ks-bar select')].map((each) => each.offsetTop)).size"""
    page.wait_for_now("now.end < 10")
    before = page.tab.evaluate(rows)
    open_script(page, served.folder, "sixty.yaml", SIXTY)
    page.wait_for_now("now.end > 60")
    page.seek(59.0)
    page.wait_for_now("now.head > 55")
    assert page.tab.evaluate(rows) == before
    bottom = "document.getElementById('ks-view').getBoundingClientRect().bottom <= innerHeight"
    assert page.tab.evaluate(bottom)
    apart = "(() => { const [a, b] = document.querySelectorAll('.ks-mark'); return b.offsetLeft - a.offsetLeft; })()"
    close = page.tab.evaluate(apart)
    page.tab.get_by_role("button", name="Zoom in").tap()
    page.wait_until(f"{apart} > 1.5 * {close}")
    page.tab.get_by_role("button", name="Zoom out").tap()
    page.wait_until(f"{apart} < 1.2 * {close}")
    box = page.tab.locator("#ks-view").bounding_box()
    touch = page.context.new_cdp_session(page.tab)
    middle, y = box["x"] + box["width"] / 2, box["y"] + box["height"] - 8
    for kind, half in (("touchStart", 20), ("touchMove", 40), ("touchMove", 80), ("touchEnd", None)):
        points = [] if half is None else [{"x": middle - half, "y": y, "id": 1}, {"x": middle + half, "y": y, "id": 2}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.wait_until(f"{apart} > 2 * {close}")
    page.wait_for_script("!script.unsaved && script.selection.length === 1")  # nothing was dragged, no box was drawn
    page.tab.get_by_role("button", name="Keyboard shortcuts").tap()
    page.tab.locator("#ks-help[open]").wait_for()
    assert page.tab.evaluate("document.getElementById('ks-help').scrollTop") == 0


CONTRASTS = """() => {
  const texts = ['.ks-time b', '.ks-time small', '.ks-note', '.ks-note b', '.ks-tick span', '.ks-mark .name', '.ks-mark .odds span',
    '.ks-headline', '.ks-doubt', '#ks-dock button:not(:disabled)', '#root [role=tab] *',
    '#root label', '#root .mantine-Slider-markLabel', '.mantine-Notification-title', '.mantine-Notification-description'];
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const width = (element) => element.getBoundingClientRect().width;
  const behind = (element, text) => { // what the text lies on: a line that is narrower is beside it
    const colour = rgb(getComputedStyle(element).backgroundColor), clear = colour[3] === 0 || width(element) < width(text);
    return clear && element.parentElement ? behind(element.parentElement, text) : colour;
  };
  const seen = [...document.querySelectorAll(texts)].filter((element) => element.textContent.trim() && element.getClientRects().length);
  return seen.map((element) => {
    const pair = [luminance(rgb(getComputedStyle(element).color)), luminance(behind(element, element))];
    return [element.className || element.tagName, (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05)];
  }); }"""


def test_light_and_dark_can_be_read_and_the_choice_is_kept(served: Any, open_page: Any):
    page = open_page(served.url, color_scheme="light")
    for scheme in ("light", "dark"):
        page.wait_until(f"document.documentElement.dataset.mantineColorScheme === '{scheme}'")
        page.wait_for_marks("marks.every((mark) => mark.odds !== null)")
        page.press("ArrowDown")
        page.wait_for_script("script.selected === 2")
        page.tab.get_by_label("ask for x, y").click()
        page.tab.get_by_text("asks for nothing").first.wait_for()  # a notification
        contrasts = page.tab.evaluate(CONTRASTS)
        assert len(contrasts) > 10
        assert any("Notification" in found[0] for found in contrasts)
        assert [found for found in contrasts if found[1] < 4.5] == []
        tabs = "[...document.querySelectorAll('#root [role=tab]')].filter((tab) => !tab.closest('.ks-wire'))"
        assert page.tab.evaluate(f"new Set({tabs}.map((tab) => tab.getBoundingClientRect().top)).size") == 1  # one row
        if scheme == "light":
            page.open_panel("Stage")
            page.tab.get_by_label("light colours").uncheck()
            page.open_panel("Keyframe")
    page.tab.reload()
    page.wait_until("document.querySelector('#ks-script')?.textContent")
    page.wait_until("document.documentElement.dataset.mantineColorScheme === 'dark'")


def test_a_box_selects_its_band_stretches_and_a_range_is_looped(page: Any):
    lane = page.tab.locator("#ks-view").bounding_box()
    gems = [page.tab.locator(f'.ks-mark[data-key="{key}"] .gem').bounding_box() for key in (1, 2)]
    left, right = (gem["x"] + gem["width"] / 2 for gem in gems)
    low = lane["y"] + lane["height"] - 6
    page.drag((left - 25, low), (right + 25, low))
    page.wait_for_script("script.selection.length === 2")
    end = page.tab.locator('#ks-band i[data-end="1"]').bounding_box()
    x, y = end["x"] + end["width"] / 2, end["y"] + end["height"] / 2
    page.drag((x, y), (x + (right - left), y))
    page.wait_for_marks("marks[0].time === 0.4 && marks[1].time > 1.1")
    page.press("Control+z")
    page.wait_for_marks("marks[1].time === 0.8")
    ruler = lane["y"] + 8
    page.tab.keyboard.down("Shift")
    page.drag((left, ruler), (right, ruler))
    page.tab.keyboard.up("Shift")
    page.wait_for_now("now.range && Math.abs(now.range[0] - 0.4) < 0.05 && Math.abs(now.range[1] - 0.8) < 0.05")
    page.tab.keyboard.down("Shift")
    page.drag((left, ruler), (left, ruler))
    page.tab.keyboard.up("Shift")
    page.wait_for_now("!now.range")


def test_music_gives_beats_to_snap_to_and_is_heard(page: Any, tmp_path: Path):
    music = tmp_path / "clicks.wav"
    write_clicks(music, seconds=6.0, period=0.5)
    page.tab.locator("#ks-music-file").set_input_files(music)
    page.wait_until("Number(document.getElementById('ks-dock').dataset.beats) >= 9")
    drawn = "document.getElementById('ks-wave')"
    page.wait_until(
        f"{drawn}.getContext('2d').getImageData(0, 0, {drawn}.width, {drawn}.height).data.some((v) => v > 0)"
    )
    page.tab.get_by_label("Snap to").select_option("beats")
    gem = page.tab.locator('.ks-mark[data-key="2"] .gem').bounding_box()
    x, y = gem["x"] + gem["width"] / 2, gem["y"] + gem["height"] / 2
    page.drag((x, y), (x + 30, y))
    page.wait_for_marks("marks[1].time > 0.9")
    beat = page.script()["marks"][1]["time"] % 0.5
    assert min(beat, 0.5 - beat) < 0.05
    page.seek(1.0)
    page.press("b")  # the first tap replaces what was detected
    page.wait_until("document.getElementById('ks-dock').dataset.beats === '1'")
    page.press("Space")
    page.wait_until("document.getElementById('ks-dock').dataset.sound === 'playing'")
    page.press("Space")
    page.wait_until("document.getElementById('ks-dock').dataset.sound === ''")
    page.tab.get_by_label("Snap to").select_option("0")
    page.tab.get_by_role("button", name="Load an audio file").click()  # asks whether to take it away
    page.wait_until("document.getElementById('ks-dock').dataset.beats === ''")


def write_clicks(path: Path, seconds: float, period: float) -> None:
    rate = 8000
    times = np.arange(int(seconds * rate)) / rate
    sound = np.exp(-(times % period) / 0.02) * np.sin(2 * np.pi * 440 * times)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes((20_000 * sound).astype("<i2").tobytes())
