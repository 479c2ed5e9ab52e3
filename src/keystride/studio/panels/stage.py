"""The Stage panel: policy, friction, shoves and what the scene shows; also the settings that survive a reload."""

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
import viser

from keystride import colours, geometry
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.description import Floats
from keystride.studio.document.draft import LAST_STEP
from keystride.studio.editor import SPEEDS, Editor
from keystride.studio.playback import controllers
from keystride.studio.view import SCENE_PARTS, View

OnStageAction = Callable[[str, Any], None]  # name of the event, and its value

SIDES = {
    "from the left": -90.0,
    "from the right": 90.0,
    "from behind": 0.0,
    "from the front": 180.0,
}  # heading of the shove relative to the robot, degrees
FASTEST_SHOVE = 20.0  # m/s, of several shoves at the same step


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
                "Shove the robot", color=colours.BUTTON, icon=viser.Icon.ARROW_BIG_RIGHT_LINES, hint="P"
            )
        self._tell(self._friction, "friction")
        self._press(shove, "shove", lambda: None)

    def _add_looks(self) -> None:
        with self._gui.add_folder("View"):
            self._follow = self._gui.add_checkbox("camera follows", True, hint="F")
            self._parts = {name: self._gui.add_checkbox(name, True) for name in SCENE_PARTS}
            self._shadows = self._gui.add_checkbox("shadows", True)
            self._light = self._gui.add_checkbox("light colours", False)
        self._tell(self._follow, "follow")
        self._tell(self._shadows, "shadows")
        self._tell(self._light, "light")
        for name, box in self._parts.items():
            self._tell(box, name)

    def shove(self, yaw: float) -> Floats:
        """Return the velocity (3,) in m/s, in the world, to add to a robot that faces this yaw."""
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


class StageCommands:
    """The actions of the Stage panel, the transport bar and the view shortcuts. `launched` is the policy of the command line."""

    def __init__(self, gui: viser.GuiApi, editor: Editor, view: View, panel: StagePanel, launched: str) -> None:
        self._gui, self._editor, self._view, self._panel, self._launched = gui, editor, view, panel, launched
        self._light = False
        self.load_policy(launched)

    def events(self) -> dict[str, Callable[[Any], None]]:
        return {
            "speed": lambda speed: self.set_speed(float(speed)),
            "range": self.set_range,
            "policy": lambda name: self.load_policy(str(name)),
            "friction": lambda friction: self.set_friction(float(friction)),
            "shove": lambda _: self.shove(),
            "follow": lambda on: self.follow(not self._view.scene.following if on is None else bool(on)),
            "look": lambda view: self._view.scene.look_from(str(view)),
            "light": lambda on: self.set_light(bool(on)),
            "shadows": lambda on: self._view.scene.set_shadows(bool(on)),
            "software": lambda _: self.draw_less(),
            **{part: lambda on, part=part: self._view.set_visible(part, bool(on)) for part in SCENE_PARTS},
        }

    def settings(self) -> dict[str, Any]:
        """Return what a reload restores besides the document."""
        editor = self._editor
        return {
            "policy": editor.policy,
            "friction": editor.player.friction,
            "speed": editor.clock.speed,
            "loop": editor.loop,
            "range": editor.range,
            "head": float(int(editor.head)) if editor.playing else round(editor.head, 2),  # not stored at every frame
            "shoves": {str(step): push.tolist() for step, push in editor.player.pushes.items()},
            "follow": self._view.scene.following,
            "light": self._light,
            "visible": dict(self._view.visible),
        }

    def apply(self, settings: dict[str, Any]) -> None:
        """Apply each setting that is valid. Settings may come from a browser."""
        visible = settings.get("visible", {})
        changes: list[Callable[[], object]] = [
            lambda: settings["policy"] == self._editor.policy or self.load_policy(str(settings["policy"])),
            lambda: self.set_friction(float(settings["friction"])),
            lambda: self.set_speed(float(settings["speed"])),
            lambda: setattr(self._editor, "loop", bool(settings["loop"])),
            lambda: self.set_range(settings["range"]),
            lambda: self.follow(bool(settings["follow"])),
            lambda: self.set_light(bool(settings["light"])),
            *(lambda part=part: self.set_visible(part, bool(visible[part])) for part in SCENE_PARTS),
            lambda: self.restore_shoves(settings["shoves"]),
            lambda: self._editor.seek(float(settings["head"])),
        ]
        for change in changes:
            try:
                change()
            except (KeyError, TypeError, ValueError, OSError):
                continue

    def load_policy(self, name: str) -> None:
        """Switch to a policy by name. Raise PolicyError if it cannot be used."""
        try:
            controllers.check_choice(name.strip(), self._launched)
            controller = controllers.load_controller(name.strip(), self._editor.robot)
        except controllers.PolicyError as error:
            self._panel.show_policy(self._editor.policy, f"{name}: {error}")
            raise
        self._editor.set_controller(controller, name.strip())
        self._panel.show_policy(name.strip(), controllers.describe_controller(controller))

    def set_speed(self, speed: float) -> None:
        self._editor.clock.speed = min(max(speed, SPEEDS[0]), SPEEDS[-1])

    def set_friction(self, friction: float) -> None:
        self._editor.set_friction(friction)
        self._panel.show_friction(self._editor.player.friction)

    def set_range(self, seconds: Any) -> None:
        """Loop between two times; None, or less than a control step, loops the whole script."""
        start, end = sorted(map(float, seconds)) if seconds else (0.0, 0.0)
        self._editor.range = (max(start, 0.0), end) if end - start >= CONTROL_DT else None

    def set_visible(self, part: str, on: bool) -> None:
        self._view.set_visible(part, on)
        self._panel.show_part(part, on)

    def shove(self) -> None:
        pose = self._editor.player.pose()
        self._editor.shove(self._panel.shove(float(geometry.yaw_of(pose.orientation))))

    def restore_shoves(self, shoves: Any) -> None:
        """Shove again as in an earlier session: velocities (3,) in m/s by control step."""
        for step, velocity in sorted((int(step), np.array(velocity, dtype=float)) for step, velocity in shoves.items()):
            if velocity.shape == (3,) and np.abs(velocity).max() <= FASTEST_SHOVE and 0 <= step <= LAST_STEP:
                self._editor.player.pushes[step] = velocity

    def follow(self, on: bool) -> None:
        self._view.scene.set_following(on)
        self._panel.show_view(follow=on)

    def set_light(self, on: bool) -> None:
        if on != self._light:
            self._light = on
            set_colour_scheme(self._gui, light=on)
            self._view.scene.set_theme(colours.LIGHT if on else colours.DARK)
        self._panel.show_view(light=on)

    def draw_less(self) -> None:
        """Turn shadows off, for a browser without a graphics card."""
        self._view.scene.set_shadows(False)
        self._panel.show_view(shadows=False)


def set_colour_scheme(gui: viser.GuiApi, *, light: bool) -> None:
    """Set the colours of viser's panels, for one browser or for all of them."""
    gui.configure_theme(dark_mode=not light, show_logo=False, show_share_button=False, brand_color=colours.BRAND)
