"""Figures in the common style, as files and in pages."""

from pathlib import Path
from typing import Any

import pytest

from keystride.colours import BLUE, SERIES
from keystride.plotting import as_svg, save_figure, styled_figure


def figure() -> Any:
    with styled_figure(3.0, 2.0) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=BLUE, label="a $x^{$ <b>")
        axes.plot([0, 1], [1, 0])
        axes.set_title("a $x^{$ <b>")
    return figure


@pytest.mark.parametrize(("kind", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_figure_is_written_in_the_format_of_its_name_and_without_a_date(
    kind: str, head: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "new" / f"a.{kind}"
    save_figure(figure(), path)
    content = path.read_bytes()
    assert content.startswith(head)
    assert b"CreationDate" not in content
    assert b"dc:date" not in content
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_another_format_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf"):
        save_figure(figure(), tmp_path / "a.docx")
    assert not list(tmp_path.iterdir())


def test_the_same_figure_is_the_same_drawing() -> None:
    assert as_svg(figure()) == as_svg(figure())


def test_labels_are_text_and_colours_can_come_from_the_page() -> None:
    drawing = as_svg(figure(), {BLUE: "var(--blue)"})
    assert "a $x^{$ &lt;b&gt;" in drawing
    assert BLUE not in drawing
    assert "var(--blue)" in drawing


def test_lines_take_the_colours_of_the_palette_in_order() -> None:
    with styled_figure(3.0, 2.0) as one:
        axes = one.subplots()
        drawn = [axes.plot([0, 1])[0].get_color() for _ in SERIES]
    assert drawn == list(SERIES)


def test_margins_place_the_axes() -> None:
    with styled_figure(4.0, 2.0, {"left": 0.25, "right": 0.75, "bottom": 0.5, "top": 1.0}) as one:
        axes = one.subplots()
    assert axes.get_position().bounds == pytest.approx((0.25, 0.5, 0.5, 0.5))
