"""The Live panel: the steps to the robot, the state of the deployment, and the take compared with the forecast."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import viser

from keystride import colours
from keystride.deploy.preflight import CHECKLIST
from keystride.evaluation.episodes import METRICS, THRESHOLDS
from keystride.robot.catalogue import load_robot
from keystride.robot.description import Floats
from keystride.studio.editor import Editor
from keystride.studio.live.live_run import DRY_RUN, LIVE_STEPS, REAL_ROBOT, SIMULATED_ROBOT, LiveRun, Show, Take
from keystride.studio.page.page_channel import Ask, Choice, PageChannel
from keystride.studio.page.scene import LiveGhost
from keystride.studio.playback.controllers import STAND_STILL

OnLiveAction = Callable[[str, Any], None]  # name of the event, and its value

ABOUT = {
    DRY_RUN: "the whole deployment against a simulation; nothing is sent over the network",
    SIMULATED_ROBOT: "the same program, over DDS on this computer",
    REAL_ROBOT: "opens once the simulated robot has played this script to its end",
}
NO_ROBOT = "start the studio with --interface to reach a robot"
POWER_OFF = "The power is off: stop braking"
GIVE_UP_QUESTION = "Is the power of the robot off? Nothing brakes it afterwards, and under power it may go on holding its last command."
LATE = 0.1  # s without a message after which the link counts as down
SHOWN_LINES = 6
CUT_POWER = {
    True: "Stay clear of it and cut its power. Until then it is being braked, as far as it obeys.",
    False: "Stay clear of it and cut its power. Nothing brakes it any more.",
}  # by whether the deployment is running
ERROR_UNITS = {"distance_m": ("distance", "m", 2), "height_m": ("height", "m", 2)}
DEPLOYED = "go2"  # the robot of `keystride deploy go2`


@dataclass(frozen=True)
class ErrorComparison:
    """A take, and the errors (6,) of the forecast per keyframe, or None."""

    take: Take
    forecast: Sequence[Floats | None]


class LivePanel:
    def __init__(self, gui: viser.GuiApi, asked: OnLiveAction, emergency: Callable[[], None]) -> None:
        self._shown: Any = None
        self._step_rows = gui.add_html("")
        self._steps = {
            step: gui.add_button(f"{number}. {step.capitalize()}", color=colours.BUTTON, icon=icon)
            for number, (step, icon) in enumerate(
                zip(LIVE_STEPS, (viser.Icon.FILE_CHECK, viser.Icon.DEVICE_DESKTOP, viser.Icon.ROBOT), strict=True),
                start=1,
            )
        }
        self._despite = gui.add_checkbox("play despite warnings", False)
        self._start = gui.add_button("Start the script", color=colours.BUTTON, icon=viser.Icon.PLAYER_PLAY)
        self._down = gui.add_button("Stop and lie down", color=colours.BUTTON, icon=viser.Icon.ARROW_DOWN)
        self._stop = gui.add_button(
            "EMERGENCY STOP", color=colours.STOP, icon=viser.Icon.HAND_STOP, hint="Esc or Space"
        )
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

    def show(self, live: LiveRun, show: Show | None, comparison: ErrorComparison | None, obstacle: str | None) -> None:
        """Show the steps, the deployment and the take; `obstacle` says why no step can be started."""
        state = live.status.get("state", "")
        steps = {step: (live.passed_steps.passed(step, show), live.is_open(step, show)) for step in LIVE_STEPS}
        shown = (live.running, live.busy, live.step, live.outcome, state, steps, tuple(live.lines), _link(live.status))
        shown = (*shown, obstacle, live.unknown)
        if self._shown is not None and self._shown[0] == shown and self._shown[1] is comparison:
            return
        self._shown = (shown, comparison)
        self._step_rows.content = _step_rows(steps, live, obstacle)
        for step, button in self._steps.items():
            button.disabled = live.busy or not steps[step][1]
        self._despite.disabled = live.running
        self._start.disabled = not (live.running and state == "ready" and live.step == REAL_ROBOT)
        on_robot = live.running and live.step != DRY_RUN  # in a dry run no robot can lie down
        self._down.disabled = not (on_robot and state in ("standing up", "ready", "running"))
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
    """Return what the stop bar of the page shows."""
    status = live.status
    news = {"running": live.running, "step": live.step, "unknown": live.unknown, "brakes": CUT_POWER[live.running]}
    return news | {"state": status.get("state", "preparing" if live.running else "ended"), **_link(status)}


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


def _step_rows(steps: Mapping[str, tuple[bool, bool]], live: LiveRun, obstacle: str | None) -> str:
    rows = f'<div class="ks-doubt">⚠ {escape(obstacle)}</div>' if obstacle and not live.running else ""
    for step, (passed, is_open) in steps.items():
        mark = "●" if live.running and live.step == step else "✓" if passed else "○" if is_open else "·"
        about = NO_ROBOT if step == REAL_ROBOT and not live.has_robot else ABOUT[step]
        rows += (
            f'<div data-step="{step}" data-passed="{str(passed).lower()}">{mark} <b>{step}</b>: {escape(about)}</div>'
        )
    return f'<div class="ks-result ks-steps">{rows}</div>'


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
    alarm = f"The robot's state is unknown: {live.unknown}. {CUT_POWER[live.running]}" if live.unknown else ""
    alarm = f'<div class="ks-unknown">{escape(alarm)}</div>' if alarm else ""
    return f'<div class="ks-result ks-live-state">{alarm}{head}<p class="ks-small">{lines}</p></div>'


def _take(comparison: ErrorComparison, live: LiveRun) -> str:
    """Return one row per keyframe: errors of the take, with those of the forecast in brackets."""
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
        '<div class="ks-result"><b>Errors of the take</b> by the robot\'s own estimate, forecast in brackets'
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


class LiveCommands:
    """Start the steps, with a confirmation before the robot moves, and show the deployment."""

    def __init__(
        self, live: LiveRun, editor: Editor, panel: LivePanel, ghost: LiveGhost, channel: PageChannel, ask: Ask
    ) -> None:
        self._live, self._editor, self._panel, self._ghost = live, editor, panel, ghost
        self._channel, self._ask = channel, ask
        self._news: dict[str, Any] = {}
        self._pose: Any = None
        self._show: tuple[Any, Show | None] = (None, None)
        self._drivable = editor.robot == load_robot(DEPLOYED)
        self._comparison: ErrorComparison | None = None

    def events(self) -> dict[str, Callable[[Any], None]]:
        return {
            "live": lambda step: self.begin(str(step)),
            "live_start": lambda _: self._live.press_start(),
            "live_down": lambda _: self._live.lie_down(),
            "live_give_up": lambda _: self.give_up(),
        }

    def begin(self, step: str) -> None:
        """Start a step; for the robot, first ask to confirm the checklist."""
        show = self._current()
        if step not in LIVE_STEPS or show is None:
            raise ValueError(self._obstacle() or f"{step} is not a step")
        if step != REAL_ROBOT:
            self._begin(step, show)
            return
        if not self._live.is_open(step, show):
            raise ValueError("the simulated robot must play this script to its end first")
        self._ask(
            Choice(
                "The robot will move. Check: " + "; ".join(CHECKLIST) + ".",
                {"All checked: move the robot": lambda: self._begin(REAL_ROBOT, show), "Cancel": lambda: None},
            )
        )

    def give_up(self) -> None:
        """Ask whether a robot in an unknown state is without power before braking ends."""
        if self._live.running:
            self._ask(Choice(GIVE_UP_QUESTION, {POWER_OFF: self._live.give_up, "Go on braking": lambda: None}))
        else:
            self._live.give_up()

    def frame(self) -> None:
        """Poll the deployment and show its state."""
        live = self._live
        if live.poll():
            self._ghost.hide_pose()
            self._pose = None
            if live.take is not None:
                self._ghost.show_take(live.take.path)
                self._comparison = ErrorComparison(live.take, self._forecast_errors())
        self._show_pose()
        self._panel.show(live, self._current(), self._comparison, self._obstacle())
        news = live_news(live)
        if news != self._news:
            self._news = news
            self._channel.show("live", news)

    def _begin(self, step: str, show: Show) -> None:
        self._live.begin(step, show)
        self._comparison = None
        self._ghost.show_take(None)

    def _current(self) -> Show | None:
        """Return what would be played now, or None if there is an obstacle."""
        editor = self._editor
        made_of = (editor.draft, editor.policy, editor.player.inbetween, self._panel.despite_warnings)
        if made_of != self._show[0]:
            script = editor.draft.script()
            playable = script is not None and self._obstacle() is None
            self._show = (made_of, Show(script, *made_of[1:]) if script is not None and playable else None)
        return self._show[1]

    def _obstacle(self) -> str | None:
        if not self._drivable:
            return "the Live tab can only drive a Go2; this studio was started for another robot"
        if not self._editor.draft.marks or self._editor.policy == STAND_STILL:
            return "nothing to play yet: add a keyframe, and choose a policy on the Stage tab"
        return None

    def _show_pose(self) -> None:
        status = self._live.status
        if "joints" in status and status["joints"] != self._pose:
            self._pose = status["joints"]
            position, orientation, joints = (np.array(status[name]) for name in ("position", "orientation", "joints"))
            self._ghost.show_pose(position, orientation, joints)

    def _forecast_errors(self) -> list[Any]:
        """Return the errors per keyframe; None if the forecast is for another script than the one played."""
        played, forecast = self._live.played, self._editor.forecast
        assert played is not None
        if played.script != self._editor.draft.script() or forecast.stale:
            return [None] * len(played.script.keyframes)
        return [forecast.errors.get(key) for key in self._editor.draft.keys]
