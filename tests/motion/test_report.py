from dataclasses import replace

import numpy as np

from keystride.motion.clip import Clip, make_clip
from keystride.motion.report import draw_clip, library_page
from keystride.robot.go2 import GO2


def standing(name: str = "stand", height: float = 0.333, frames: int = 60) -> Clip:
    position = np.tile([0.0, 0.0, height], (frames, 1))
    turn = np.tile([1.0, 0, 0, 0], (frames, 1))
    metadata = {"tags": ["stand"], "segments": [[0, frames, "stand"], [0, 1, "<waltz>"]], "source": "a<b>.bvh"}
    return make_clip(name, GO2, position, turn, np.tile(GO2.stance, (frames, 1)), metadata)


def test_a_page_is_whole_and_loads_nothing():
    page = library_page([standing("one"), standing("two")], GO2, "my <library>")
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 2
    assert "my &lt;library&gt;" in page
    assert "a&lt;b&gt;.bvh" in page
    assert "src=" not in page
    assert "<style" not in page[page.index("</style>") :]  # it would apply to the whole page
    assert "Every target of the quality table is reached." in page


def test_names_from_files_are_text_on_the_page():
    """A robot's name comes from a description that anyone may have written, a clip's name from a file."""
    evil = "</script><script>alert(1)</script>"
    page = library_page([standing(evil)], replace(GO2, name=evil), evil)
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)") >= 4


def test_a_missed_target_is_said():
    page = library_page([standing(height=0.30)], GO2, "sunk")
    assert "penetration_p99 is" in page
    assert "Every target" not in page


def test_the_plot_of_a_clip_has_its_tags_lines_and_contacts():
    clip = standing()
    planted = np.ones((60, 4), dtype=bool)
    planted[20:30, 1] = False
    height = np.tile([0.0, 0.1, 0.2, 0.3], (60, 1))  # (T, 4) m
    figure = draw_clip(clip, np.full(60, 0.7), height, planted, GO2.leg_names)
    tags, speed, feet, contacts = figure.axes
    assert [text.get_text().strip() for text in tags.texts] == [
        "stand"
    ]  # one frame of a waltz is too short for its name
    assert [line.get_ydata()[0] for line in speed.lines] == [0.7]
    assert [line.get_ydata()[0] for line in feet.lines] == [0.0, 0.1, 0.2, 0.3]
    assert [len(bars.get_paths()) for bars in contacts.collections] == [1, 2, 1, 1]
    assert contacts.get_xlim() == (0.0, clip.seconds)


def test_tags_of_its_own_are_shown_as_text():
    page = library_page([standing()], GO2, "dances")
    assert "&lt;waltz&gt; 0 s" in page
    assert "<waltz>" not in page
