"""What a page may say."""

from keystride.studio.wire import read_events


def test_what_a_page_types_is_read_or_ignored():
    assert read_events('keystride:[[1,"play",null],[2,"seek",0.5]]') == [(1, "play", None), (2, "seek", 0.5)]
    for nonsense in ("keystride:", "", "keystride:{", "keystride:[1]", 'keystride:[["a","b","c"]]', "keystride:5"):
        assert read_events(nonsense) == []
