"""The Result panel: errors per keyframe and charts of the last pass, and files to download.

The table and the charts take their colours from the custom properties of the page that shows them (`keystride.colours`).
"""

import tempfile
import threading
from collections.abc import Callable
from html import escape
from pathlib import Path

import numpy as np
import viser

from keystride import colours
from keystride.evaluation.episodes import METRICS, THRESHOLDS
from keystride.evaluation.recording import Recording
from keystride.evaluation.rendering.plot import draw_panels
from keystride.evaluation.rendering.replay import replay_page
from keystride.keyframes.goals import CONTROL_DT
from keystride.plotting import as_svg

HINT = "Play the script to its end to see the errors at each keyframe and charts of the pass."
NOTHING_YET = f'<div class="ks-result" style="opacity:.7">{HINT}</div>'

REPORT_HEADINGS = ("", "time", "distance", "roll", "pitch", "yaw", "posture", "height", "")
ERROR_FORMATS = {"distance_m": "{:.2f} m", "height_m": "{:.2f} m"}
DEGREES = "{:.1f}°"

REPORT_CSS = """body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:var(--ks-text)}
table{border-collapse:collapse;width:100%}td,th{padding:.25em .6em;text-align:right;border-bottom:1px solid var(--ks-line)}
.met{color:var(--ks-good)}.missed,.over{color:var(--ks-bad)}.charts{display:grid;grid-template-columns:1fr 1fr;gap:1em}"""


class ResultPanel:
    def __init__(self, gui: viser.GuiApi, exported: Callable[[str], None]) -> None:
        self._table = gui.add_html(NOTHING_YET)
        self._buttons = [
            gui.add_button("Report (HTML)", color=colours.BUTTON, icon=viser.Icon.REPORT_ANALYTICS, visible=False),
            gui.add_button("Replay (HTML)", color=colours.BUTTON, icon=viser.Icon.PLAYER_PLAY, visible=False),
            gui.add_button("Film (MP4)", color=colours.BUTTON, icon=viser.Icon.MOVIE, visible=False),
        ]
        self._charts = gui.add_html("")
        self._shown: Recording | None = None
        for button, kind in zip(self._buttons, EXPORTS, strict=True):
            self._press(button, kind, exported)

    def show(self, recording: Recording | None) -> None:
        """Show the table at once; the charts follow, since drawing them in this thread would stop playback."""
        self._shown = recording
        for button in self._buttons:
            button.visible = recording is not None
        if recording is None:
            self._table.content, self._charts.content = NOTHING_YET, ""
            return
        limits = f'<p class="ks-small">Met: within {escape(str(THRESHOLDS))}.</p>'
        summary = f"<b>{escape(headline(recording))}</b>{table(recording)}{limits}"
        self._table.content = f'<div class="ks-result">{summary}</div>'
        self._charts.content = ""
        threading.Thread(target=self._draw_charts, args=(recording,), name="charts", daemon=True).start()

    def _draw_charts(self, recording: Recording) -> None:
        drawings = "".join(f'<div style="margin:6px 0">{drawing}</div>' for drawing in charts(recording))
        if recording is self._shown:
            self._charts.content = drawings

    def set_busy(self, busy: bool) -> None:
        for button in self._buttons:
            button.disabled = busy

    @staticmethod
    def _press(button: viser.GuiButtonHandle, kind: str, exported: Callable[[str], None]) -> None:
        async def pressed(_: viser.GuiEvent) -> None:
            exported(kind)

        button.on_click(pressed)


def headline(recording: Recording) -> str:
    """Return one sentence: how many keyframes were met, and whether the robot fell."""
    met, count = int(recording.met.sum()), len(recording.met)
    fall = "" if recording.fell_at is None else f"; the robot fell at {recording.fell_at:.2f} s"
    return f"{met} of {count} keyframes met{fall}"


def table(recording: Recording) -> str:
    """Return HTML with one row per keyframe: errors above their threshold are highlighted, a dash is an open component."""
    cells = "".join(f"<th>{name}</th>" for name in REPORT_HEADINGS)
    rows = "".join(_row(recording, k) for k in range(len(recording.met)))
    return f'<table class="ks-errors"><tr>{cells}</tr>{rows}</table>'


def report_page(recording: Recording) -> str:
    """Return the whole report of a pass, without motion, as a single HTML file."""
    title = escape(recording.title)
    drawings = "".join(f"<div>{drawing}</div>" for drawing in charts(recording))
    style = colours.report_css() + REPORT_CSS
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"<h1>{title}</h1><p>Policy: {escape(recording.policy)}. {escape(headline(recording))}.</p>{table(recording)}"
        f"<p>Met means within {escape(str(THRESHOLDS))}, by a robot that has not fallen.</p>"
        f'<div class="charts">{drawings}</div></html>\n'
    )


def charts(recording: Recording) -> list[str]:
    """Return one SVG element per panel of the plot, in the colours of the page. Takes about half a second."""
    return [as_svg(figure, colours.CSS_COLOURS) for figure in draw_panels(recording)]


def _row(recording: Recording, k: int) -> str:
    cells = f"<td>{k + 1}</td><td>{recording.steps[k] * CONTROL_DT:.2f} s</td>"
    for metric, error in zip(METRICS, recording.errors[k].tolist(), strict=True):
        over = error - getattr(THRESHOLDS, metric)
        title = f' class="over" title="{_cell(metric, over)} over"' if over > 0 else ""
        cells += f"<td{title}>{_cell(metric, error)}</td>"
    word = "met" if recording.met[k] else "missed"
    return f'<tr>{cells}<td class="{word}">{word}</td></tr>'


def _cell(metric: str, error: float) -> str:
    if np.isnan(error):
        return "-"
    return ERROR_FORMATS.get(metric, DEGREES).format(error)


def report_file(recording: Recording) -> tuple[str, bytes]:
    return f"{recording.title}-report.html", report_page(recording).encode()


def replay_file(recording: Recording) -> tuple[str, bytes]:
    return f"{recording.title}-replay.html", replay_page(recording).encode()


def film_file(recording: Recording) -> tuple[str, bytes]:
    from keystride.evaluation.rendering.video import write_video

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        write_video(recording, path)
        return f"{recording.title}.mp4", path.read_bytes()


EXPORTS: dict[str, Callable[[Recording], tuple[str, bytes]]] = {
    "report": report_file,
    "replay": replay_file,
    "film": film_file,
}


class Exporter:
    """Makes one file at a time on a separate thread and sends it to the browser."""

    def __init__(self, client: viser.ClientHandle, set_busy: Callable[[bool], None]) -> None:
        self._client, self._set_busy = client, set_busy

    def start(self, kind: str, recording: Recording) -> None:
        self._set_busy(True)
        threading.Thread(target=self._make, args=(kind, recording), name=kind, daemon=True).start()

    def _make(self, kind: str, recording: Recording) -> None:
        news = self._client.add_notification("Exporting", f"Making the {kind}.", loading=True)
        try:
            name, content = EXPORTS[kind](recording)
            self._client.send_file_download(name, content, save_immediately=True)
            news.title, news.body, news.color = "Exported", f"{name}, {len(content) / 1e6:.1f} MB", "green"
        except (ModuleNotFoundError, RuntimeError, OSError) as error:  # no encoder, no renderer, disk full
            news.title, news.body, news.color = "Not exported", str(error), "red"
        finally:
            news.loading, news.auto_close_seconds = False, 6.0
            self._set_busy(False)
