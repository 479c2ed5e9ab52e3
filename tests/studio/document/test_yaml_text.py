"""Saving changes what was edited, and nothing else."""

import pytest

from keystride.keyframes.files import parse_script
from keystride.keyframes.script import Keyframe
from keystride.robot.go2 import GO2
from keystride.studio.document import draft as drafts
from keystride.studio.document.draft import from_script
from keystride.studio.document.yaml_text import merge

TEXT = """# My show
version: 1   # of the format

keyframes:
  # off we go
  - time: 1.0   # after a breath
    position: [0.5, 0.0, 0.32]
  # the bend
  - time: 2.0
    # to the left
    yaw: 20  # degrees

  - time: 3.0
    posture: sit
# the end
"""
DRAFT = from_script(parse_script(TEXT), GO2)


def test_nothing_changed_is_the_same_text():
    assert merge(TEXT, DRAFT.keys, DRAFT) == TEXT


def test_only_the_changed_field_changes():
    changed = drafts.change(DRAFT, 1, time=1.5)
    assert merge(TEXT, DRAFT.keys, changed) == TEXT.replace("time: 1.0 ", "time: 1.5 ")


def test_comments_move_with_their_keyframes():
    moved = drafts.remove(drafts.retime(DRAFT, 1, 2.5), [3])
    text = merge(TEXT, DRAFT.keys, moved)
    assert (
        text.index("# the bend") < text.index("# off we go") < text.index("# after a breath") < text.index("# the end")
    )
    assert "posture" not in text
    assert from_script(parse_script(text), GO2).script() == moved.script()


def test_new_keyframes_and_fields_are_written():
    changed = drafts.add(drafts.change(DRAFT, 2, yaw=None, label="on: and on", pitch=3.5), Keyframe(time=4.0, roll=1.0))
    text = merge(TEXT, DRAFT.keys, changed)
    assert parse_script(text) == changed.script()
    assert "# to the left" in text or "# the bend" in text
    assert text.startswith("# My show\nversion: 1   # of the format\n")


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nkeyframes: [{time: 1.0, yaw: 2.0}]\n",
        "{version: 1, keyframes: [{time: 1.0, yaw: 2.0}]}",
        "version: 1\nkeyframes:\n- {time: 1.0, yaw: 2.0}\n",
        "version: 1\nkeyframes:\n-\n  time: 1.0\n  yaw: 2.0",
        "keyframes:\n- time: 1.0\n  yaw: 2.0\nversion: 1",
        "version: 1\nkeyframes:\n    -   time: 1.0\n        yaw: 2.0\n",
    ],
)
def test_every_style_is_saved_right(text: str):
    draft = from_script(parse_script(text), GO2)
    changed = drafts.add(drafts.change(draft, 1, yaw=3.0), Keyframe(time=2.0, yaw=5.0))
    assert parse_script(merge(text, draft.keys, changed)) == changed.script()


FLOW = """# My show
version: 1
keyframes:
  - {time: 1.0, yaw: 10}  # first
  # the bend
  - {time: 2.0,  position: [0.5, 0],
     yaw: 20}
  - time: 3.0  # in full
    yaw: 30
"""
FLOW_DRAFT = from_script(parse_script(FLOW), GO2)


def test_keyframes_in_braces_keep_their_comments():
    changed = drafts.change(FLOW_DRAFT, 1, yaw=12.5, label="a: b")
    assert merge(FLOW, FLOW_DRAFT.keys, changed) == FLOW.replace("yaw: 10}", "yaw: 12.5, label: 'a: b'}")
    changed = drafts.change(FLOW_DRAFT, 2, position=(0.5, 0.25))
    assert merge(FLOW, FLOW_DRAFT.keys, changed) == FLOW.replace("[0.5, 0]", "[0.5, 0.25]")
    changed = drafts.add(drafts.change(FLOW_DRAFT, 1, yaw=None, pitch=2.0), Keyframe(time=4.0, yaw=1.0))
    text = merge(FLOW, FLOW_DRAFT.keys, changed)
    assert text == FLOW.replace("{time: 1.0, yaw: 10}", "{time: 1.0, pitch: 2.0}") + "  - time: 4.0\n    yaw: 1.0\n"
    assert merge(FLOW, FLOW_DRAFT.keys, drafts.remove(FLOW_DRAFT, [2])).startswith(FLOW[: FLOW.index("  # the bend")])


def test_what_is_around_a_list_in_brackets_is_kept():
    text = "# My show\nversion: 1\nkeyframes: [{time: 1.0, yaw: 2.0}]  # all of them\n# the end\n"
    draft = from_script(parse_script(text), GO2)
    merged = merge(text, draft.keys, drafts.change(draft, 1, yaw=3.0))
    assert merged.startswith("# My show\nversion: 1\nkeyframes:\n")
    assert "# all of them" in merged
    assert merged.endswith("# the end\n")


def test_line_endings_stay():
    text = TEXT.replace("\n", "\r\n")
    draft = from_script(parse_script(text), GO2)
    changed = drafts.change(draft, 1, time=1.5)
    assert merge(text, draft.keys, changed) == TEXT.replace("time: 1.0 ", "time: 1.5 ").replace("\n", "\r\n")


@pytest.mark.parametrize("below", [False, True])
def test_a_stage_with_its_comments_stays_as_it_is_written(below: bool):
    stage = "stage:  # the small hall\n  floor: [[-1, -1], [3, -1], [3, 1]]  # m\n  audience: [[3, -1], [3, 1]]\n"
    keyframes = "keyframes:\n  - time: 1.0\n    yaw: 5\n"
    text = "version: 2\n" + (keyframes + stage if below else stage + keyframes)
    draft = from_script(parse_script(text), GO2)
    assert merge(text, draft.keys, draft) == text
    assert merge(text, draft.keys, drafts.change(draft, 1, yaw=7.0)) == text.replace("yaw: 5", "yaw: 7.0")
