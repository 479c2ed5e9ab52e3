"""A document survives as text, with its history, and nonsense is refused."""

import json

import pytest

from keystride.keyframes.script import Keyframe, Obstacle, Script, Stage
from keystride.robot.go2 import GO2
from keystride.studio.document import draft as drafts
from keystride.studio.document.draft import Draft
from keystride.studio.document.history import Document
from keystride.studio.document.storage import MAX_CHARACTERS, StorageError, dump, load_document, load_latest


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
