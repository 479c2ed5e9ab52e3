"""A reload or a lost connection loses nothing."""

from keystride.robot.go2 import GO2
from keystride.studio.document.draft import Draft
from keystride.studio.document.history import Document
from keystride.studio.unsaved_work import CAPACITY, TabRestore, Work


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
