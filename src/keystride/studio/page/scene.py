"""The scene of one browser: the simulated robot, its planned, expected and actual paths, and the deployed robot."""

from collections.abc import Iterable

import numpy as np
import viser
from numpy.typing import NDArray

from keystride import colours
from keystride.robot.description import Floats
from keystride.studio.page.figure import Figure
from keystride.studio.page.ground import ROOT, add_floor, add_numbers, sky
from keystride.studio.playback.trajectory_buffer import RobotPose

GHOST_LIFT = 0.008  # m
OPACITY = 0.55
TRACE_STEPS = 5  # control steps per point of the trace
PATH_LIFT = 0.004  # m
ARRIVED = 0.005  # m; the stage has caught up with the robot
WAYPOINT = 0.12  # m, length of the stroke for a waypoint
FRAME_DISTANCE = 1.8  # m
VIEWS = {
    "side": np.array([0.0, -3.0, 0.15]),
    "top": np.array([-0.01, 0.0, 4.0]),
    "free": np.array([-2.1, -2.7, 1.35]),
}  # m, from the point looked at
PHONE_CAMERA, PHONE_LOOK_AT = np.array([-2.3, -3.7, 2.1]), np.array([0.45, -0.1, -0.85])  # m
FOLLOW = 0.12  # share of the distance to the robot covered per frame


class Scene:
    def __init__(self, client: viser.ClientHandle, figure: Figure) -> None:
        self._client = client
        self._figure = figure
        self._root = client.scene.add_frame(ROOT, show_axes=False)
        self._centre = self._place = np.zeros(2)
        self.following = True
        self._robot = [
            client.scene.add_mesh_trimesh(f"{ROOT}/robot/{body.name}", body.whole.mesh()) for body in figure.bodies
        ]
        self._path = self._lines("path", 0.012)
        self._trace = self._lines("trace", 0.016)
        self._expected = self._lines("expected", 0.014)
        self._waypoints = self._lines("waypoints", 0.008)
        self._trace.colors = np.array(colours.TRACE, dtype=np.uint8)
        add_numbers(client.scene, ROOT)
        self.set_theme(colours.DARK)

    def show_robot(self, pose: RobotPose) -> None:
        positions, orientations = self._figure.place(pose.position, pose.orientation, pose.joints)
        with self._client.atomic():
            self._follow(pose.position[:2])
            for handle, position, orientation in zip(self._robot, positions, orientations, strict=True):
                handle.position, handle.wxyz = position, orientation

    def show_path(self, points: Iterable[Floats]) -> None:
        """Draw the path from the start through points; only their x and y are used."""
        ground = np.array([(0.0, 0.0), *((point[0], point[1]) for point in points)])
        self._path.points = _chain(ground)

    def show_trace(self, positions: Floats) -> None:
        """Draw the path of the base from its positions (n, 3), one per control step."""
        ground = positions[::TRACE_STEPS, :2]
        self._trace.points = _chain(ground)

    def show_expected(self, ground: Floats) -> None:
        """Draw the path (n, 2) that the forecast expects, as dashes."""
        self._expected.points = _chain(ground)[::2]

    def show_waypoints(self, places: Floats) -> None:
        """Draw waypoints (n, 3) x, y, yaw as short strokes across their heading, where the path does not hide them."""
        half = 0.5 * WAYPOINT * np.stack([-np.sin(places[:, 2]), np.cos(places[:, 2])], axis=1)
        strokes = [
            _chain(np.stack([place - part, place + part])) for place, part in zip(places[:, :2], half, strict=True)
        ]
        self._waypoints.points = np.concatenate(strokes) if strokes else _chain(places[:, :2])

    def set_visible(self, *, path: bool, trace: bool) -> None:
        self._path.visible = self._waypoints.visible = path
        self._trace.visible = self._expected.visible = trace

    def set_theme(self, theme: colours.Theme) -> None:
        self._client.scene.set_background_image(sky(theme), format="png")
        add_floor(self._client.scene, ROOT, theme)
        lines = ((self._path, theme.path), (self._expected, theme.expected), (self._waypoints, theme.waypoints))
        for handle, colour in lines:
            handle.colors = np.array(colour, dtype=np.uint8)

    def set_shadows(self, on: bool) -> None:
        self._client.scene.configure_default_lights(cast_shadow=on)

    def set_following(self, on: bool) -> None:
        """Follow the robot or not. The camera takes over the shift of the stage, so the picture does not jump."""
        self.following = on
        if on:
            return
        shift = np.array([*self._centre, 0.0])
        self._centre = np.zeros(2)
        with self._client.atomic():
            self._root.position = (0.0, 0.0, 0.0)
            look_at = self._client.camera.look_at + shift
            self._client.camera.position = self._client.camera.position + shift
            self._client.camera.look_at = look_at

    def to_stage(self, point: Floats) -> Floats:
        """Transform a point (3,) from the world of the browser to the stage, which moves to follow the robot."""
        return point + np.array([*self._centre, 0.0])

    def look_at(self, point: Floats) -> None:
        """Move the camera close to a point (3,) of the stage, keeping its direction."""
        target = point - np.array([*self._centre, 0.0])
        away = self._client.camera.position - self._client.camera.look_at
        distance = np.linalg.norm(away)
        with self._client.atomic():
            self._client.camera.position = target + away * (FRAME_DISTANCE / max(distance, 1e-6))
            self._client.camera.look_at = target

    def look_from(self, view: str) -> None:
        """Look at the current target from the side, from above, or from the default direction."""
        offset, target = VIEWS[view], np.array(self._client.camera.look_at)
        with self._client.atomic():
            self._client.camera.position = target + offset
            self._client.camera.look_at = target

    def look_above_sheet(self) -> None:
        """Place the robot in the upper half of the picture: on a phone, panels cover the lower half."""
        with self._client.atomic():
            self._client.camera.position = PHONE_CAMERA
            self._client.camera.look_at = PHONE_LOOK_AT

    @property
    def gliding(self) -> bool:
        """Whether the stage is still catching up with the robot."""
        return self.following and bool(np.abs(self._place - self._centre).max() > ARRIVED)

    def _follow(self, place: Floats) -> None:
        self._place = place
        if self.gliding:
            self._centre = self._centre + FOLLOW * (place - self._centre)
            self._root.position = (-self._centre[0], -self._centre[1], 0.0)

    def _lines(self, name: str, thickness: float) -> viser.LineSegmentsHandle:
        nothing = np.zeros((1, 2, 3))
        return self._client.scene.add_line_segments(f"{ROOT}/{name}", nothing, colors=(0, 0, 0), thickness=thickness)


def _chain(ground: Floats) -> NDArray[np.float32]:
    """Return segments (n - 1, 2, 3) between points (n, 2), or one of zero length for fewer than two points."""
    points = np.concatenate([ground, np.full((len(ground), 1), PATH_LIFT)], axis=1).astype(np.float32)
    if len(points) < 2:
        return np.zeros((1, 2, 3), dtype=np.float32)
    return np.stack([points[:-1], points[1:]], axis=1)


class LiveGhost:
    def __init__(self, client: viser.ClientHandle, figure: Figure) -> None:
        self._client, self._figure = client, figure
        self._bodies: list[viser.MeshHandle] = []
        self._take: viser.LineSegmentsHandle | None = None

    def show_pose(self, position: Floats, orientation: Floats, joints: Floats) -> None:
        """Show the deployed robot at a pose in the frame of the script."""
        with self._client.atomic():
            if not self._bodies:
                self._bodies = [self._body(row) for row in range(len(self._figure.bodies))]
            placed = zip(self._bodies, *self._figure.place(position, orientation, joints), strict=True)
            for handle, where, turned in placed:
                handle.position, handle.wxyz = where, turned

    def hide_pose(self) -> None:
        for handle in self._bodies:
            handle.remove()
        self._bodies = []

    def show_take(self, path: Floats | None) -> None:
        """Draw the path (n, 2) of a take in m; None removes it."""
        if self._take is not None:
            self._take.remove()
            self._take = None
        if path is not None and len(path) > 1:
            points = np.column_stack([path, np.full(len(path), GHOST_LIFT)])
            segments = np.stack([points[:-1], points[1:]], axis=1)
            self._take = self._client.scene.add_line_segments(
                f"{ROOT}/take", segments, colors=colours.TAKE, thickness=0.02
            )

    def _body(self, row: int) -> viser.MeshHandle:
        body = self._figure.bodies[row]
        return self._client.scene.add_mesh_simple(
            f"{ROOT}/live/{body.name}",
            body.outline.vertices,
            body.outline.faces,
            color=colours.TAKE,
            opacity=OPACITY,
            cast_shadow=False,
            receive_shadow=False,
        )
