"""The simulated robot as a process: its signals, its standard input, its views."""

import gc
import json
import signal
import sys
import threading
import time
from contextlib import ExitStack

from keystride.deploy.clock import Ticker, raise_priority
from keystride.deploy.launch import say
from keystride.deploy.simulated_link import SimulatedConfig, SimulatedRobot
from keystride.robot.go2 import GO2

FRAME = 1 / 30  # s


def serve(interface: str, domain: int, config: SimulatedConfig, *, viewer: str, control: bool) -> int:
    from keystride.deploy.link import join

    raise_priority()
    robot = SimulatedRobot(GO2, join(interface, domain), config)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: setattr(robot, "closed", True))
    if control:
        threading.Thread(target=listen, args=(robot,), daemon=True).start()
    say(f"simulated Go2 on {interface}, domain {domain}; poses to udp://127.0.0.1:{config.pose_port}; Ctrl-C ends it")
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
    if viewer == "window":
        _show_window(robot, stack)
    elif viewer == "browser":
        _show_browser(robot, stack)


def _show_window(robot: SimulatedRobot, stack: ExitStack) -> None:
    from mujoco import viewer

    window = stack.enter_context(viewer.launch_passive(robot.world.model, robot.world.data))
    _draw(lambda now: window.sync(), stack)


def _show_browser(robot: SimulatedRobot, stack: ExitStack) -> None:
    import viser
    from mjviser import ViserMujocoScene

    server = viser.ViserServer(host="127.0.0.1")
    stack.callback(server.stop)
    scene = ViserMujocoScene(server, robot.world.model, num_envs=1)
    _draw(lambda now: scene.update_from_mjdata(robot.world.data), stack)


def _draw(draw, stack: ExitStack) -> None:
    loop = Ticker("viewer", FRAME, draw, lambda error: say(f"the view has ended: {error}"))
    loop.start()
    stack.callback(loop.stop)
