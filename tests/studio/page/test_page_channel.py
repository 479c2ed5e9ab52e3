"""What a page may send."""

from keystride.studio.page.page_channel import read_events


def test_what_a_page_types_is_read_or_ignored():
    typed = 'keystride:{"session":"a","events":[[1,"play",null],[2,"seek",0.5]]}'
    assert read_events(typed) == ("a", [(1, "play", None), (2, "seek", 0.5)])
    for nonsense in (
        "keystride:",
        "",
        "keystride:{",
        "keystride:[1]",
        'keystride:{"events":[["a","b","c"]]}',
        "keystride:5",
    ):
        assert read_events(nonsense)[1] == []
