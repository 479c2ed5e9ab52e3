"""What the robot runs on and who drives it, and what of it is shown."""

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
import viser

from keystride.robot.description import Floats
from keystride.studio.page import palette

OnStageAction = Callable[[str, Any], None]  # policy, friction, follow, visible, shadows, shove; and what

SIDES = {"from the left": -90.0, "from the right": 90.0, "from behind": 0.0, "from the front": 180.0}  # degrees it goes


class StagePanel:
    def __init__(self, gui: viser.GuiApi, policies: tuple[str, ...], asked: OnStageAction) -> None:
        self._gui, self._asked = gui, asked
        with gui.add_folder("Policy"):
            self._policy = gui.add_dropdown("policy", policies)
            self._about = gui.add_html("")
        self._add_trials()
        self._add_looks()
        self._tell(self._policy, "policy")

    def _add_trials(self) -> None:
        gui = self._gui
        with gui.add_folder("Robustness"):
            self._friction = gui.add_slider("ground friction", 0.1, 1.5, 0.05, 0.8)
            self._strength = gui.add_slider("shove (m/s)", 0.1, 2.0, 0.1, 0.8)
            self._side = gui.add_dropdown("direction", tuple(SIDES))
            shove = gui.add_button(
                "Shove the robot", color=palette.BUTTON, icon=viser.Icon.ARROW_BIG_RIGHT_LINES, hint="P"
            )
        self._tell(self._friction, "friction")
        self._press(shove, "shove", lambda: None)

    def _add_looks(self) -> None:
        with self._gui.add_folder("View"):
            self._follow = self._gui.add_checkbox("camera follows", True, hint="F")
            self._parts = {name: self._gui.add_checkbox(name, True) for name in ("keyframes", "path", "trace")}
            self._shadows = self._gui.add_checkbox("shadows", True)
            self._light = self._gui.add_checkbox("light colours", False)
        self._tell(self._follow, "follow")
        self._tell(self._shadows, "shadows")
        self._tell(self._light, "light")
        for name, box in self._parts.items():
            self._tell(box, name)

    def shove(self, yaw: float) -> Floats:
        """(3,) m/s in the world, for a robot that faces yaw."""
        heading = yaw + np.radians(SIDES[self._side.value])
        return self._strength.value * np.array([np.cos(heading), np.sin(heading), 0.0])

    def show_policy(self, name: str, about: str) -> None:
        if name not in self._policy.options:
            self._policy.options = (name, *self._policy.options)
        self._policy.value = name
        self._about.content = f'<p style="font-size:12px;opacity:.7;margin:4px 10px 6px">{escape(about)}</p>'

    def show_view(self, *, follow: bool | None = None, shadows: bool | None = None, light: bool | None = None) -> None:
        if follow is not None:
            self._follow.value = follow
        if shadows is not None:
            self._shadows.value = shadows
        if light is not None:
            self._light.value = light

    def show_friction(self, friction: float) -> None:
        self._friction.value = friction

    def show_part(self, part: str, on: bool) -> None:
        self._parts[part].value = on

    def _tell(self, handle: Any, what: str) -> None:
        async def updated(event: viser.GuiEvent) -> None:
            if event.client is not None:
                self._asked(what, handle.value)

        handle.on_update(updated)

    def _press(self, button: viser.GuiButtonHandle, what: str, value: Callable[[], Any]) -> None:
        async def pressed(_: viser.GuiEvent) -> None:
            self._asked(what, value())

        button.on_click(pressed)
