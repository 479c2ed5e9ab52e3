"""The Result panel: errors per keyframe and charts of the last pass, and files to download."""

import tempfile
import threading
from collections.abc import Callable
from html import escape
from pathlib import Path

import viser

from keystride import colours
from keystride.evaluation.episodes import THRESHOLDS
from keystride.evaluation.recording import Recording
from keystride.evaluation.rendering.replay import replay_page
from keystride.studio.report import charts, headline, report_page, table

HINT = "Play the script to its end to see the errors at each keyframe and charts of the pass."
NOTHING_YET = f'<div class="ks-result" style="opacity:.7">{HINT}</div>'


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
    """Makes one file at a time in a thread of its own and sends it to the browser."""

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
