"""A reload loses nothing."""

from keystride.studio.history import Document
from keystride.studio.reloads import ROOM, Reloads, Work


def test_a_tab_takes_its_work_back_once():
    reloads, work = Reloads(), Work(Document(), "a.yaml")
    reloads.keep("tab", work)
    assert reloads.take("tab") is work
    assert reloads.take("tab") is None


def test_only_so_many_tabs_are_remembered():
    reloads = Reloads()
    for number in range(ROOM + 5):
        reloads.keep(str(number), Work(Document(), ""))
    assert reloads.take("0") is None
    assert reloads.take(str(ROOM + 4)) is not None
    reloads.keep("", Work(Document(), ""))
    assert reloads.take("") is None
