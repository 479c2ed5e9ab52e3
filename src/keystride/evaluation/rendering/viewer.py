"""A window in which the episode plays, over and over, until it is closed."""

import time

import mujoco

from keystride.evaluation.recording import Recording
from keystride.evaluation.rendering.ghosts import Ghosts
from keystride.keyframes.goals import CONTROL_DT
from keystride.robot.model import load_model
from keystride.robot.picture import SEEN_GROUPS


def show(recording: Recording) -> None:
    """Needs a screen. In real time; the mouse turns the view."""
    from mujoco import viewer

    model = load_model(recording.robot)
    data, ghosts = mujoco.MjData(model), Ghosts(recording)
    with viewer.launch_passive(model, data, show_left_ui=False, show_right_ui=False) as window:
        window.opt.geomgroup[:] = 0
        window.opt.geomgroup[list(SEEN_GROUPS)] = 1
        step = 0
        while window.is_running():
            began = time.monotonic()
            with window.lock():
                data.qpos[:] = recording.poses[step]
                mujoco.mj_forward(model, data)
                window.cam.lookat[:2] = recording.poses[step, :2]
                window.user_scn.ngeom = 0
                ghosts.add(window.user_scn, step * CONTROL_DT)
            window.sync()
            step = (step + 1) % len(recording.poses)
            time.sleep(max(CONTROL_DT - (time.monotonic() - began), 0.0))
