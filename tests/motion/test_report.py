from dataclasses import replace
from xml.etree import ElementTree

import numpy as np

from keystride.motion.clip import Clip, make_clip
from keystride.motion.report import contact_rows, library_page, lines, segments_in, svg, tag_band, time_axis
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


def test_drawings_are_well_formed():
    drawing = svg(
        [
            tag_band(segments_in(standing()), 60),
            lines(np.random.default_rng(0).random((1000, 2)), ["red", "blue"], "m/s", 60, 1.0),
            contact_rows(np.ones((60, 4), dtype=bool), GO2.leg_names),
            time_axis(1.18),
        ]
    )
    root = ElementTree.fromstring(drawing)
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert names.count("polyline") == 2
    assert names.count("rect") == 2 + 1 + 4  # two segments, one frame, four feet


def test_tags_of_its_own_are_shown_as_text():
    page = library_page([standing()], GO2, "dances")
    assert "&lt;waltz&gt; 0 s" in page
    assert "<waltz>" not in page
