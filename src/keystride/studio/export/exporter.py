"""Files of a pass, made beside the playing and sent to the browser when they are ready."""

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import viser

from keystride.evaluation.recording import Recording
from keystride.evaluation.rendering.replay import replay_page
from keystride.studio.export import report


def report_file(recording: Recording) -> tuple[str, bytes]:
    return f"{recording.title}-report.html", report.page(recording).encode()


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
    """One file at a time."""

    def __init__(self, client: viser.ClientHandle, set_busy: Callable[[bool], None]) -> None:
        self._client, self._set_busy = client, set_busy

    def start(self, kind: str, recording: Recording) -> None:
        self._set_busy(True)
        threading.Thread(target=self._make, args=(kind, recording), name=kind, daemon=True).start()

    def _make(self, kind: str, recording: Recording) -> None:
        news = self._client.add_notification("Exporting", f"The {kind} is being made.", loading=True)
        try:
            name, content = EXPORTS[kind](recording)
            self._client.send_file_download(name, content, save_immediately=True)
            news.title, news.body, news.color = "Exported", f"{name}, {len(content) / 1e6:.1f} MB", "green"
        except (ModuleNotFoundError, RuntimeError, OSError) as error:  # no encoder, nothing to draw with, no room
            news.title, news.body, news.color = "Not exported", str(error), "red"
        finally:
            news.loading, news.auto_close_seconds = False, 6.0
            self._set_busy(False)
