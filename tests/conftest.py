import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, settings
from onnx import TensorProto, helper, numpy_helper
from pytest import TerminalReporter  # noqa: PT013

from keystride.graphics import choose_graphics
from keystride.keyframes.goals import COMPONENTS, CONTROL_DT
from keystride.policy.bundle import Metadata, sealed
from keystride.robot.go2 import GO2

# No asserted times: a busy machine is not a failure. Derandomised: a run that failed fails again.
settings.register_profile("keystride", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("keystride")

choose_graphics()

# Started in the background or by nohup, tests would ignore these signals, and so would every process that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)

SYSTEM_PACKAGES = {  # what a reason for skipping says, and the Debian packages that are missing
    "Chromium": "chromium",
    "nothing to draw with": "libegl1 libgl1-mesa-dri",
}


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say in one line how many tests were skipped because system packages are missing, and how to install them."""
    skipped = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    counts = {packages: sum(words in reason for reason in skipped) for words, packages in SYSTEM_PACKAGES.items()}
    missing = " ".join(packages for packages, count in counts.items() if count)
    if missing:
        total = sum(counts.values())
        terminalreporter.write_line(f"{total} tests skipped; to run them: apt install {missing}", yellow=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests: Playwright's synchronous API has room for one in a process."""
    from keystride.benchmarks.browser import find_browser, headless_browser

    executable = find_browser()
    if executable is None:
        pytest.skip("needs Chromium and Playwright")
    with headless_browser(executable) as browser:
        yield browser


STATE = {
    "base_position": [3],
    "base_orientation": [4],
    "base_linear_velocity": [3],
    "base_angular_velocity": [3],
    "joint_angles": [12],
    "joint_velocities": [12],
    "previous_action": [12],
}


GOALS = {"goal_position": [3], "goal_angles": [3], "goal_posture": [12], "goal_time": []}


BITS = {"goal_presence": [5], "goal_height": [], "goal_visible": []}


def standing_file(components: tuple[str, ...] = COMPONENTS, see: str = "all") -> bytes:
    """Joint targets are the stance, whatever is asked."""
    inputs = [
        *(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", *size]) for name, size in STATE.items()),
        *(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", "K", *size]) for name, size in GOALS.items()),
        *(helper.make_tensor_value_info(name, TensorProto.BOOL, ["B", "K", *size]) for name, size in BITS.items()),
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 12]) for name in ("joint_targets", "action")
    ]
    constants = {"stance": GO2.stance.astype(np.float32), "nothing": np.zeros(1, np.float32)}
    nodes = [
        helper.make_node("Mul", ["previous_action", "nothing"], ["action"]),
        helper.make_node("Add", ["action", "stance"], ["joint_targets"]),
    ]
    tensors = [numpy_helper.from_array(values, name) for name, values in constants.items()]
    graph = helper.make_graph(nodes, "standing", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.helper.set_model_props(model, _metadata(components, see).as_strings())
    return sealed(model.SerializeToString(deterministic=True))


def _metadata(components: tuple[str, ...], see: str) -> Metadata:
    return Metadata(
        joint_names=GO2.joint_names,
        joint_stiffness=(GO2.stiffness,) * 12,
        joint_damping=(GO2.damping,) * 12,
        default_joint_pos=tuple(map(float, GO2.stance)),
        action_scale=(GO2.action_scale,) * 12,
        observation_names=(*STATE, *GOALS, *BITS),
        robot=GO2.name,
        control_dt=CONTROL_DT,
        goals="any" if len(components) > 1 else "position",
        goal_components=components,
        max_keyframes=5,
        see=see,
        value_names=(),
        training_steps=0,
        training_data="none",
        licence="Apache-2.0",
        keystride_version="0",
        weights_sha256="0" * 64,
    )


@pytest.fixture(scope="session")
def standing_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policies") / "standing.onnx"
    path.write_bytes(standing_file())
    return path


@pytest.fixture(scope="session")
def position_standing_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, for a policy that knows positions alone and sees the next goal only."""
    path = tmp_path_factory.mktemp("policies") / "position.onnx"
    path.write_bytes(standing_file(("position",), "next"))
    return path
