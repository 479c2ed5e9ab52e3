"""The Keyframe panel: the values of the selected keyframe, a switch for each component, and the library of poses."""

import time
from collections.abc import Callable
from math import degrees, radians
from typing import Any

import numpy as np
import viser

from keystride import colours
from keystride.keyframes.postures import named_postures
from keystride.keyframes.script import MAX_SECONDS, TILT_LIMITS
from keystride.keyframes.stage import MAX_LABEL, MAX_METRES
from keystride.robot.description import Robot
from keystride.studio.document import draft as drafts
from keystride.studio.document import posing
from keystride.studio.document.draft import Draft
from keystride.studio.document.keyframe_poses import Ghost, ghosts
from keystride.studio.document.pose_library import PoseExists, PoseLibrary
from keystride.studio.document.posing import pose_of, set_pose, set_posture
from keystride.studio.editor import Editor
from keystride.studio.page.figure import Figure, pose_buttons
from keystride.studio.page.handles import Move
from keystride.studio.page.page_channel import Ask, Choice

CUSTOM = "custom angles"
JUST_TOUCHED = 0.8  # s for which a control that the user has moved is not overwritten

Edit = Callable[[Draft, int], Draft]  # edits the keyframe with this key
OnKeyframeEdit = Callable[[Edit, str], None]  # the edit, and the gesture that it belongs to


class KeyframePanel:
    def __init__(
        self, gui: viser.GuiApi, robot: Robot, asked: OnKeyframeEdit, save_pose: Callable[[str], None]
    ) -> None:
        self._gui, self._robot, self._asked, self._save_pose = gui, robot, asked, save_pose
        self._touched: dict[int, float] = {}
        self._behind = False  # whether a control does not show the actual value
        self._head = gui.add_html("")
        with gui.add_folder("Keyframe") as self._folder:
            self._time = gui.add_number("time (s)", 1.0, min=0.02, max=MAX_SECONDS, step=0.02)
            self._label = gui.add_text("label", "")
        self._add_place()
        self._add_angles()
        self._add_posture()
        self._bind(self._time, "time", lambda value: lambda draft, key: drafts.retime(draft, key, value))
        self._bind(self._label, "label", _labelled)

    def _add_place(self) -> None:
        gui, limit = self._gui, MAX_METRES
        with gui.add_folder("Position") as self._place_folder:
            self._has_position = gui.add_checkbox("ask for x, y", True)
            self._xy = gui.add_vector2("x, y (m)", (0.0, 0.0), min=(-limit, -limit), max=(limit, limit), step=0.01)
            self._has_height = gui.add_checkbox("ask for height", True)
            self._z = gui.add_number("z (m)", 0.32, min=0.0, max=2.0, step=0.005)
            self._relative = gui.add_checkbox(
                "from previous", False, hint="measure x and y from the previous keyframe instead of the start"
            )
            ground = gui.add_button(
                "Put the feet on the ground", color=colours.BUTTON, icon=viser.Icon.ARROW_BAR_TO_DOWN
            )
        self._bind(self._xy, "xy", lambda value: lambda draft, key: posing.set_offset(draft, key, value))
        self._bind(self._z, "z", lambda value: self._planting(lambda draft, key: posing.set_height(draft, key, value)))
        self._bind(self._relative, "", lambda on: lambda draft, key: posing.set_relative(draft, key, on))
        self._switch(self._has_position, "position")
        self._switch(self._has_height, "height")
        self._press(ground, posing.stand_on_ground)

    def _add_angles(self) -> None:
        self._angles: dict[str, tuple[Any, Any]] = {}
        with self._gui.add_folder("Orientation") as self._angle_folder:
            for name in ("yaw", "pitch", "roll"):
                limit = min(degrees(TILT_LIMITS[name]), 180.0)
                box = self._gui.add_checkbox(f"ask for {name}", False)
                slider = self._gui.add_slider(f"{name} (°)", -limit, limit, 0.5, 0.0)
                self._angles[name] = (box, slider)
                self._switch(box, name)
                self._bind(slider, name, self._turned(name))

    def _add_posture(self) -> None:
        with self._gui.add_folder("Posture") as self._posture_folder:
            self._has_posture = self._gui.add_checkbox("ask for posture", False)
            self._named = self._gui.add_dropdown(
                "posture", (CUSTOM, *named_postures(self._robot)), initial_value=CUSTOM
            )
            self._poses = self._gui.add_html("")  # pictures; the page sends an event when one is clicked
            self._pose_name = self._gui.add_text(
                "pose name", "", hint="name under which the pose is saved in the library"
            )
            keep = self._gui.add_button("Save this pose", color=colours.BUTTON, icon=viser.Icon.BOOKMARK)
            mirrored = self._gui.add_button(
                "Mirror left and right", color=colours.BUTTON, icon=viser.Icon.FLIP_HORIZONTAL
            )
            self._mirror = self._gui.add_checkbox(
                "mirror live", False, hint="apply changes of a leg to the opposite leg as well"
            )
            self._planted = self._gui.add_checkbox(
                "keep feet planted", False, hint="bend the legs so that the feet stay in place while the body moves"
            )
            self._joints = [self._add_joint(joint) for joint in range(len(self._robot.joint_names))]
        self._switch(self._has_posture, "posture")
        self._bind(self._named, "", _postured)
        self._press(mirrored, posing.mirror_posture)

        async def kept(_: viser.GuiEvent) -> None:
            self._save_pose(self._pose_name.value)

        keep.on_click(kept)

    def _add_joint(self, joint: int) -> viser.GuiSliderHandle[float]:
        low, high = (float(np.degrees(limit[joint])) for limit in (self._robot.lower, self._robot.upper))
        name = self._robot.joint_names[joint].removesuffix("_joint").replace("_", " ")
        stance = float(np.degrees(self._robot.stance[joint]))
        slider = self._gui.add_slider(f"{name} (°)", round(low, 1), round(high, 1), 0.1, round(stance, 1))
        self._bind(slider, f"joint {joint}", lambda angle: self._bent(joint, angle))
        return slider

    def show_poses(self, html: str) -> None:
        """Show the library: HTML of `figure.pose_buttons`."""
        self._poses.content = html

    def show(self, draft: Draft, key: int | None, ghost: Ghost | None, head: str) -> None:
        """Show the values of the selected keyframe, or only the text above them if none is selected."""
        self._head.content = head
        for folder in (self._folder, self._place_folder, self._angle_folder, self._posture_folder):
            folder.visible = key is not None
        if key is None or ghost is None:
            return
        keyframe = draft.keyframe(key)
        position = keyframe.position
        self._set(self._time, keyframe.time)
        self._set(self._label, keyframe.label or "")
        self._set(self._has_position, position is not None)
        self._set(self._has_height, position is not None and len(position) == 3)
        self._set(self._relative, keyframe.relative)
        x, y = (float(value) for value in (position[:2] if position else ghost.position[:2]))
        self._set(self._xy, (round(x, 3), round(y, 3)))
        self._set(self._z, round(float(ghost.position[2]), 3))
        self._relative.disabled = position is None
        self._has_height.disabled = position is None
        self._show_angles(keyframe, ghost)
        self._show_posture(keyframe, ghost)

    def _show_angles(self, keyframe: Any, ghost: Ghost) -> None:
        for name, (box, slider) in self._angles.items():
            self._set(box, getattr(keyframe, name) is not None)
            self._set(slider, round(degrees(float(ghost.angles[posing.ANGLES.index(name)])), 1))

    def _show_posture(self, keyframe: Any, ghost: Ghost) -> None:
        self._set(self._has_posture, keyframe.posture is not None)
        self._set(self._named, keyframe.posture if isinstance(keyframe.posture, str) else CUSTOM)
        for slider, angle in zip(self._joints, np.degrees(ghost.joints).tolist(), strict=True):
            self._set(slider, min(max(round(angle, 1), slider.min), slider.max))

    def _turned(self, name: str) -> Callable[[float], Edit]:
        return lambda angle: self._planting(lambda draft, key: posing.set_angle(draft, key, name, radians(angle)))

    def _bent(self, joint: int, angle: float) -> Edit:
        mirrored = self._mirror.value
        return lambda draft, key: posing.set_joint(draft, key, joint, radians(angle), mirrored=mirrored)

    def moved(self, move: Move) -> Edit:
        """Return the edit for a drag of a ghost or of one of its handles."""

        def edit(draft: Draft, key: int) -> Draft:
            if move.foot is not None:
                draft = posing.set_foot(draft, key, *move.foot, mirrored=self._mirror.value)
            if move.ground is not None:
                draft = posing.place_keyframe(draft, key, move.ground)
            if move.yaw is not None:
                draft = posing.set_angle(draft, key, "yaw", move.yaw)
            return draft if move.height is None else posing.set_height(draft, key, move.height)

        return edit if move.foot is not None else self._planting(edit)

    def _planting(self, edit: Edit) -> Edit:
        """Return the edit with the feet kept in place, if that is ticked."""

        def planted(draft: Draft, key: int) -> Draft:
            if not self._planted.value:
                return edit(draft, key)
            return posing.with_planted_feet(draft, key, lambda whole: edit(whole, key))

        return planted

    def forget_touches(self) -> None:
        """Let every control show the actual value again: an edit was refused, or made by other means."""
        self._touched.clear()

    def late(self) -> bool:
        """Return whether a control that was left alone while the user moved it can be updated now; true only once."""
        if not self._behind or time.monotonic() - max(self._touched.values(), default=0.0) <= JUST_TOUCHED:
            return False
        self._behind = False
        return True

    def _set(self, handle: Any, value: Any) -> None:
        if time.monotonic() - self._touched.get(id(handle), 0.0) > JUST_TOUCHED:
            handle.value = value
        elif handle.value != value:
            self._behind = True

    def _bind(self, handle: Any, gesture: str, edit: Callable[[Any], Edit]) -> None:
        async def updated(event: viser.GuiEvent) -> None:
            if event.client is not None:  # otherwise the session has set it
                if gesture:
                    self._touched[id(handle)] = time.monotonic()
                self._asked(edit(handle.value), gesture)

        handle.on_update(updated)

    def _switch(self, handle: Any, component: str) -> None:
        self._bind(handle, "", lambda on: lambda draft, key: posing.set_component(draft, key, component, on))

    def _press(self, button: viser.GuiButtonHandle, edit: Edit) -> None:
        async def pressed(_: viser.GuiEvent) -> None:
            self._asked(edit, "")

        button.on_click(pressed)


def _labelled(text: str) -> Edit:
    return lambda draft, key: drafts.change(draft, key, label=text[:MAX_LABEL] or None)


def _postured(name: str) -> Edit:
    if name == CUSTOM:
        return lambda draft, key: posing.set_component(draft, key, "posture", True)
    return lambda draft, key: posing.set_posture(draft, key, name)


class PoseCommands:
    """Use, save and delete the poses of the library."""

    def __init__(self, editor: Editor, library: PoseLibrary, figure: Figure, panel: KeyframePanel, ask: Ask) -> None:
        self._editor, self._library, self._figure, self._panel, self._ask = editor, library, figure, panel, ask
        self._shown = False

    def events(self) -> dict[str, Callable[[Any], None]]:
        return {
            "pose": lambda name: self.use(str(name), time.perf_counter()),
            "save_pose": lambda name: self.save(str(name)),
            "delete_pose": lambda name: self.delete(str(name)),
        }

    def use(self, name: str, now: float) -> None:
        """Pose the selected keyframe."""
        key, own = self._editor.selected, self._library.own()
        if key is None:
            raise ValueError("select a keyframe before choosing its pose")
        if name in own:
            self._editor.edit(lambda draft: set_pose(draft, key, own[name]), now)
        elif name in self._library.built_in:
            self._editor.edit(lambda draft: set_posture(draft, key, name), now)
        else:
            raise ValueError(f"the pose {name!r} no longer exists")

    def save(self, name: str) -> None:
        """Save the pose of the selected keyframe; ask before replacing another one."""
        key = self._editor.selected
        if key is None:
            raise ValueError("select the keyframe whose pose you want to save")
        pose = pose_of(ghosts(self._editor.draft)[key])
        try:
            self._library.save(name, pose)
        except PoseExists as error:
            replace = {"Replace": lambda: self._library.save(name, pose, replace=True), "Cancel": lambda: None}
            self._ask(Choice(f"{error} Saving would replace it.", replace))

    def delete(self, name: str) -> None:
        question = f"Delete the pose {name}? Keyframes that use it do not change."
        self._ask(Choice(question, {"Delete": lambda: self._library.delete(name), "Cancel": lambda: None}))

    def refresh(self) -> None:
        """Show the library if it has changed."""
        if self._library.changed() or not self._shown:
            self._shown = True
            poses = self._library.poses()
            own = [name for name in poses if name not in self._library.built_in]
            self._panel.show_poses(pose_buttons(poses, own, self._figure))
