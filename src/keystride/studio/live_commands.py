"""The commands of the Live panel: to the robot step by step, what is asked before, and what is shown meanwhile."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keystride.deploy.preflight import CHECKLIST
from keystride.robot.catalogue import load_robot
from keystride.studio.editor import Editor
from keystride.studio.file_commands import Ask, Choice
from keystride.studio.live.live_run import LADDER, REAL_ROBOT, LiveRun, Show
from keystride.studio.page.live_ghost import LiveGhost
from keystride.studio.page.page_channel import PageChannel
from keystride.studio.panels.live import ErrorComparison, LivePanel, live_news
from keystride.studio.playback.controllers import STAND_STILL

DEPLOYED = "go2"  # the robot of `keystride deploy go2`


class LiveCommands:
    def __init__(
        self, live: LiveRun, editor: Editor, panel: LivePanel, ghost: LiveGhost, channel: PageChannel, ask: Ask
    ) -> None:
        self._live, self._editor, self._panel, self._ghost = live, editor, panel, ghost
        self._channel, self._ask = channel, ask
        self._news: dict[str, Any] = {}
        self._pose: Any = None
        self._show: tuple[Any, Show | None] = (None, None)
        self._comparison: ErrorComparison | None = None

    def events(self) -> dict[str, Callable[[Any], None]]:
        return {
            "live": lambda step: self.begin(str(step)),
            "live_start": lambda _: self._live.press_start(),
            "live_down": lambda _: self._live.lie_down(),
        }

    def begin(self, step: str) -> None:
        """Start a step; for the robot the checklist has to be confirmed first."""
        show = self._current()
        if self._editor.robot != load_robot(DEPLOYED):
            raise ValueError("only a Go2 can be driven from here; this studio was started for another robot")
        if step not in LADDER or show is None:
            raise ValueError("there is nothing to play yet: add a keyframe and choose a policy on the Stage tab")
        if step != REAL_ROBOT:
            self._begin(step, show)
            return
        if not self._live.is_open(step, show):
            raise ValueError("the simulated robot has to play this script to its end first")
        self._ask(
            Choice(
                "The robot is going to move. Check: " + "; ".join(CHECKLIST) + ".",
                {"All checked: move the robot": lambda: self._begin(REAL_ROBOT, show), "Cancel": lambda: None},
            )
        )

    def frame(self) -> None:
        """Look after the deployment and show what it does."""
        live = self._live
        if live.poll():
            self._ghost.hide_pose()
            self._pose = None
            if live.take is not None:
                self._ghost.show_take(live.take.path)
                self._comparison = ErrorComparison(live.take, self._forecast_errors())
        self._show_pose()
        self._panel.show(live, self._current(), self._comparison)
        news = live_news(live)
        if news != self._news:
            self._news = news
            self._channel.show("live", news)

    def _begin(self, step: str, show: Show) -> None:
        self._live.begin(step, show)
        self._comparison = None
        self._ghost.show_take(None)

    def _current(self) -> Show | None:
        """What would be played now; None without keyframes or without a policy."""
        editor = self._editor
        made_of = (editor.draft, editor.policy, editor.player.inbetween, self._panel.despite_warnings)
        if made_of != self._show[0]:
            script = editor.draft.script()
            playable = script is not None and editor.policy != STAND_STILL
            self._show = (made_of, Show(script, *made_of[1:]) if script is not None and playable else None)
        return self._show[1]

    def _show_pose(self) -> None:
        status = self._live.status
        if "joints" in status and status["joints"] != self._pose:
            self._pose = status["joints"]
            position, orientation, joints = (np.array(status[name]) for name in ("position", "orientation", "joints"))
            self._ghost.show_pose(position, orientation, joints)

    def _forecast_errors(self) -> list[Any]:
        """By keyframe; None where the forecast is not of the script that was played."""
        played, forecast = self._live.played, self._editor.forecast
        assert played is not None
        if played.script != self._editor.draft.script() or forecast.stale:
            return [None] * len(played.script.keyframes)
        return [forecast.errors.get(key) for key in self._editor.draft.keys]
