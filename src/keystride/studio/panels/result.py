"""The last pass: errors per keyframe, drawings, and files to take away."""

from collections.abc import Callable
from html import escape

import viser

from keystride.evaluation.errors import THRESHOLDS
from keystride.evaluation.recording import Recording
from keystride.studio.export.charts import charts
from keystride.studio.export.report import headline, table
from keystride.studio.page import palette

HINT = "Play the script to its end to see the errors at each keyframe and plots of the pass."
NOTHING_YET = f'<div class="ks-result" style="opacity:.7">{HINT}</div>'


class ResultPanel:
    def __init__(self, gui: viser.GuiApi, exported: Callable[[str], None]) -> None:
        self._table = gui.add_html(NOTHING_YET)
        self._buttons = [
            gui.add_button("Report (HTML)", color=palette.BUTTON, icon=viser.Icon.REPORT_ANALYTICS, visible=False),
            gui.add_button("Replay (HTML)", color=palette.BUTTON, icon=viser.Icon.PLAYER_PLAY, visible=False),
            gui.add_button("Film (MP4)", color=palette.BUTTON, icon=viser.Icon.MOVIE, visible=False),
        ]
        self._charts = gui.add_html("")
        for button, kind in zip(self._buttons, ("report", "replay", "film"), strict=True):
            self._press(button, kind, exported)

    def show(self, recording: Recording | None) -> None:
        for button in self._buttons:
            button.visible = recording is not None
        if recording is None:
            self._table.content, self._charts.content = NOTHING_YET, ""
            return
        limits = f'<p class="ks-small">Met: within {escape(str(THRESHOLDS))}.</p>'
        summary = f"<b>{escape(headline(recording))}</b>{table(recording)}{limits}"
        self._table.content = f'<div class="ks-result">{summary}</div>'
        self._charts.content = "".join(f'<div style="margin:6px 0">{drawing}</div>' for drawing in charts(recording))

    def set_busy(self, busy: bool) -> None:
        for button in self._buttons:
            button.disabled = busy

    @staticmethod
    def _press(button: viser.GuiButtonHandle, kind: str, exported: Callable[[str], None]) -> None:
        async def pressed(_: viser.GuiEvent) -> None:
            exported(kind)

        button.on_click(pressed)
