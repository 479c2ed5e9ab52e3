"""The simulated robot as a process: its signals, its standard input, its views."""

import gc
import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import mujoco

from keystride.deploy.clock import Ticker, real_time
from keystride.deploy.log.console import say
from keystride.deploy.sim.link import SimulatedConfig, SimulatedRobot, simulated_world
from keystride.robot.go2 import GO2

FRAME = 1 / 30  # s


def serve(interface: str, domain: int, config: SimulatedConfig, *, viewer: str, control: bool) -> int:
    from keystride.deploy.unitree.link import join

    world = simulated_world(GO2, config)
    with real_time():
        return _serve(SimulatedRobot(world, join(interface, domain), config), viewer, control=control)


def _serve(robot: SimulatedRobot, viewer: str, *, control: bool) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: setattr(robot, "closed", True))
    if control:
        threading.Thread(target=listen, args=(robot,), daemon=True).start()
    say(f"simulated Go2; poses to udp://127.0.0.1:{robot.config.pose_port}; Ctrl-C ends it")
    with ExitStack() as stack:
        show(robot, viewer, stack)
        gc.freeze()
        robot.run()
    late = robot.lateness
    say(f"{robot.world.time:.1f} s simulated, the latest step by {1000 * late.worst:.1f} ms")
    return 0


def listen(robot: SimulatedRobot) -> None:
    """Disturbances from standard input; its end is the robot's."""
    for line in sys.stdin:
        try:
            message = json.loads(line)
            seconds = float(message.get("seconds", 1e9))
            robot.disturbances.set(message["disturb"], message["value"], seconds, time.monotonic())
        except (ValueError, KeyError, TypeError) as error:
            print(f"error: {line.strip()}: {error}", file=sys.stderr)
    robot.closed = True


def show(robot: SimulatedRobot, viewer: str, stack: ExitStack) -> None:
    """A view draws a copy of the robot: the simulation goes on meanwhile."""
    if viewer == "none":
        return
    model = robot.world.model
    copy = mujoco.MjData(model)
    draw = open_view(model, copy, viewer, stack)

    def frame(now: float) -> None:
        copy.qpos[:] = robot.world.data.qpos
        mujoco.mj_forward(model, copy)
        draw()

    loop = Ticker("viewer", FRAME, frame, lambda error: say(f"the view has ended: {error}"))
    loop.start()
    stack.callback(loop.stop)


def open_view(model: mujoco.MjModel, data: mujoco.MjData, viewer: str, stack: ExitStack) -> Callable[[], None]:
    """Open a window or a page in the browser; return what draws the data's present state there."""
    return _window(model, data, stack) if viewer == "window" else _browser(model, data, stack)


def _window(model: mujoco.MjModel, copy: mujoco.MjData, stack: ExitStack) -> Callable[[], None]:
    from mujoco import viewer

    return stack.enter_context(viewer.launch_passive(model, copy)).sync


def _browser(model: mujoco.MjModel, copy: mujoco.MjData, stack: ExitStack) -> Callable[[], None]:
    from mjviser import ViserMujocoScene

    from keystride.web_access import PrivateServer, start_server

    server, address = start_server(
        lambda: PrivateServer(host="127.0.0.1", label="simulated Go2", verbose=False), "127.0.0.1"
    )
    stack.callback(server.stop)
    server.initial_camera.position, server.initial_camera.look_at = (1.4, -1.4, 0.8), (0.0, 0.0, 0.2)
    scene = ViserMujocoScene(server, model, num_envs=1)
    scene.camera_tracking_enabled = False
    say(f"to be seen at {address}")
    return lambda: scene.update_from_mjdata(copy)
