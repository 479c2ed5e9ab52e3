"""To the robot, step by step: dry run, simulated robot, robot; what it does now, and the take beside the forecast."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import viser

from keystride.evaluation.errors import METRICS, THRESHOLDS
from keystride.robot.description import Floats
from keystride.studio.live.live_run import DRY_RUN, LADDER, REAL_ROBOT, SIMULATED_ROBOT, LiveRun, Show
from keystride.studio.live.take import Take
from keystride.studio.page import palette

OnLiveAction = Callable[[str, Any], None]  # live, live_start, live_down, live_despite; and what

ABOUT = {
    DRY_RUN: "the whole deployment against a simulation; nothing goes out on the network",
    SIMULATED_ROBOT: "the same program, over DDS on this computer",
    REAL_ROBOT: "the robot, once the simulated one has played this script to its end",
}
NO_ROBOT = "start the studio with --interface to reach a robot"
LATE = 0.1  # s without news, beyond which the link counts as down
SHOWN_LINES = 6
ERROR_UNITS = {"distance_m": ("distance", "m", 2), "height_m": ("height", "m", 2)}
STOP: palette.RGB = (208, 32, 32)


@dataclass(frozen=True)
class ErrorComparison:
    """Errors per keyframe (6,) of a take, and of the forecast where there is one."""

    take: Take
    forecast: Sequence[Floats | None]


class LivePanel:
    def __init__(self, gui: viser.GuiApi, asked: OnLiveAction, emergency: Callable[[], None]) -> None:
        self._shown: Any = None
        self._ladder = gui.add_html("")
        self._steps = {
            step: gui.add_button(f"{number}. {step.capitalize()}", color=palette.BUTTON, icon=icon)
            for number, (step, icon) in enumerate(
                zip(LADDER, (viser.Icon.FILE_CHECK, viser.Icon.DEVICE_DESKTOP, viser.Icon.ROBOT), strict=True), start=1
            )
        }
        self._despite = gui.add_checkbox("play despite warnings", False)
        self._start = gui.add_button("Start the script", color=palette.BUTTON, icon=viser.Icon.PLAYER_PLAY)
        self._down = gui.add_button("Stop and lie down", color=palette.BUTTON, icon=viser.Icon.ARROW_DOWN)
        self._stop = gui.add_button("EMERGENCY STOP", color=STOP, icon=viser.Icon.HAND_STOP, hint="Esc or Space")
        self._state = gui.add_html("")
        self._take = gui.add_html("")
        for step, button in self._steps.items():
            self._press(button, lambda step=step: asked("live", step))
        self._press(self._start, lambda: asked("live_start", None))
        self._press(self._down, lambda: asked("live_down", None))
        self._press(self._stop, emergency)
        self._tell(self._despite, asked)

    @property
    def despite_warnings(self) -> bool:
        return bool(self._despite.value)

    def show(self, live: LiveRun, show: Show | None, comparison: ErrorComparison | None) -> None:
        state = live.status.get("state", "")
        ladder = {step: (live.ladder.passed(step, show), live.is_open(step, show)) for step in LADDER}
        shown = (live.running, live.busy, live.step, live.outcome, state, ladder, tuple(live.lines), _link(live.status))
        if self._shown is not None and self._shown[0] == shown and self._shown[1] is comparison:
            return
        self._shown = (shown, comparison)
        self._ladder.content = _ladder(ladder, live)
        for step, button in self._steps.items():
            button.disabled = live.busy or not ladder[step][1]
        self._despite.disabled = live.running
        self._start.disabled = not (live.running and state == "ready" and live.step == REAL_ROBOT)
        self._down.disabled = not (live.running and state in ("standing up", "ready", "running"))
        self._stop.disabled = not live.running
        self._state.content = _state(live)
        self._take.content = "" if comparison is None else _take(comparison, live)

    @staticmethod
    def _press(button: viser.GuiButtonHandle, action: Callable[[], None]) -> None:
        async def pressed(_: viser.GuiEvent) -> None:
            action()

        button.on_click(pressed)

    def _tell(self, box: Any, asked: OnLiveAction) -> None:
        async def updated(event: viser.GuiEvent) -> None:
            if event.client is not None:
                asked("live_despite", box.value)

        box.on_update(updated)


def live_news(live: LiveRun) -> dict[str, Any]:
    """What the page's own stop bar shows."""
    status = live.status
    return {"running": live.running, "step": live.step, "state": status.get("state", "preparing"), **_link(status)}


def _link(status: Mapping[str, Any]) -> dict[str, Any]:
    def up(age: float | None) -> bool | None:
        return None if age is None else age < LATE

    battery = status.get("battery")
    return {
        "link": up(status.get("state_age")),
        "pose": up(status.get("pose_age")),
        "battery": None if battery is None else round(battery),
        "temperature": None if status.get("temperature") is None else round(status["temperature"]),
    }


def _ladder(ladder: Mapping[str, tuple[bool, bool]], live: LiveRun) -> str:
    rows = ""
    for step, (passed, is_open) in ladder.items():
        mark = "●" if live.running and live.step == step else "✓" if passed else "○" if is_open else "·"
        about = NO_ROBOT if step == REAL_ROBOT and not live.has_robot else ABOUT[step]
        rows += (
            f'<div data-step="{step}" data-passed="{str(passed).lower()}">{mark} <b>{step}</b>: {escape(about)}</div>'
        )
    return f'<div class="ks-result ks-ladder">{rows}</div>'


def _state(live: LiveRun) -> str:
    head = f"<b>{escape(live.step)}</b>: {escape(live.outcome)}" if live.step and not live.running else ""
    if live.running:
        link = _link(live.status)
        words = {True: "up", False: "DOWN", None: "-"}
        battery = "-" if link["battery"] is None else f"{link['battery']}%"
        head = (
            f"<b>{escape(live.step)}</b>: {escape(str(live.status.get('state', 'preparing')))} · "
            f"link {words[link['link']]} · poses {words[link['pose']]} · battery {battery}"
        )
    lines = "<br>".join(escape(line) for line in live.lines[-SHOWN_LINES:])
    return f'<div class="ks-result ks-live-state">{head}<p class="ks-small">{lines}</p></div>'


def _take(comparison: ErrorComparison, live: LiveRun) -> str:
    """A row a keyframe: errors of the take, and in brackets those of the forecast."""
    asked = [row for row in range(len(METRICS)) if np.isfinite(comparison.take.errors[:, row]).any()]
    heads = "".join(f"<th>{_unit(METRICS[row])[0]}</th>" for row in asked)
    rows = ""
    for number, (errors, forecast) in enumerate(zip(comparison.take.errors, comparison.forecast, strict=True), start=1):
        cells = "".join(_cell(row, errors[row], None if forecast is None else forecast[row]) for row in asked)
        late = "" if number <= comparison.take.reached else "<td>not reached</td>"
        rows += f"<tr><td>{number}</td>{cells}{late}</tr>"
    folder = (
        ""
        if live.take_folder is None
        else f'<p class="ks-small">keystride deploy replay {escape(str(live.take_folder))}</p>'
    )
    return (
        '<div class="ks-result"><b>The take</b>, by the robot\'s own estimate, and in brackets the forecast'
        f'<table class="ks-errors ks-take"><tr><th></th>{heads}</tr>{rows}</table>{folder}</div>'
    )


def _unit(metric: str) -> tuple[str, str, int]:
    return ERROR_UNITS.get(metric, (metric.removesuffix("_deg"), "°", 1))


def _cell(row: int, error: float, forecast: float | None) -> str:
    if np.isnan(error):
        return "<td>-</td>"
    _, unit, digits = _unit(METRICS[row])
    over = ' class="over"' if error > getattr(THRESHOLDS, METRICS[row]) else ""
    beside = "" if forecast is None or np.isnan(forecast) else f" ({forecast:.{digits}f})"
    return f"<td{over}>{error:.{digits}f}{unit}{beside}</td>"
