"""`keystride benchmark policy`: how long a control step of a policy takes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keystride.keyframes.goals import Goals
    from keystride.physics.simulator import State
    from keystride.policy.runtime import Policy

WARM_UP = 100
BUSY = 1.5  # load average above which the clock measures others too


@dataclass(frozen=True)
class BenchmarkPolicy:
    """Time whole control steps of a policy, state in and joint targets out, for one robot on one thread."""

    policy: str = "go2-position"
    """A shipped policy's name, a bundle, an ONNX file or a run."""
    steps: int = 5000
    """Control steps to time."""
    json: bool = False
    """Print JSON instead of a sentence."""

    def run(self) -> int:
        from keystride.policy.loading import open_policy

        figures = measure_policy(open_policy(self.policy), self.steps)
        if self.json:
            import json

            print(json.dumps({"policy": self.policy, **figures}, indent=2))
        else:
            _print(self.policy, figures)
        return 0


def measure_policy(policy: Policy, steps: int) -> dict[str, Any]:
    """Percentiles over steps with as many keyframes as the policy holds."""
    import numpy as np

    state, goals = _state(), _goals(policy)
    action = policy.resting_action(state.joint_angles)
    seconds = np.empty((WARM_UP + steps, 2))  # on the wall's clock, and on the thread's own
    for i in range(len(seconds)):
        start = time.perf_counter(), time.thread_time()
        _, action = policy.step(state, goals, np.array([i % 25]), action)
        seconds[i] = time.perf_counter() - start[0], time.thread_time() - start[1]
    (p50, p50_cpu), (p99, p99_cpu), (worst, _) = np.percentile(seconds[WARM_UP:], [50, 99, 100], axis=0).tolist()
    budget = policy.metadata.control_dt
    return {
        "keyframes": policy.metadata.max_keyframes,
        "threads": 1,
        "steps": steps,
        "p50_ms": round(1000 * p50, 4),
        "p99_ms": round(1000 * p99, 4),
        "worst_ms": round(1000 * worst, 4),
        "p50_cpu_ms": round(1000 * p50_cpu, 4),
        "p99_cpu_ms": round(1000 * p99_cpu, 4),
        "budget_ms": 1000 * budget,
        "p99_share": round(p99 / budget, 5),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _state() -> State:
    """One robot that stands."""
    import numpy as np

    from keystride.physics.simulator import State, standing_start
    from keystride.robot.go2 import GO2
    from keystride.robot.kinematics import feet_from_joints, standing_height

    start = standing_start(1, float(standing_height(GO2, GO2.stance)), GO2.stance)
    return State(
        start.position,
        start.orientation,
        start.linear_velocity,
        start.angular_velocity,
        start.joint_angles,
        start.joint_velocities,
        feet=feet_from_joints(GO2, start.joint_angles),
        contact=np.zeros((1, 4)),
        torque=np.zeros((1, 12)),
        diverged=np.zeros(1, dtype=bool),
    )


def _goals(policy: Policy) -> Goals:
    """A straight walk, a second from keyframe to keyframe, with all that the policy knows."""
    import numpy as np

    from keystride.keyframes.goals import COMPONENTS, empty_goals

    count = policy.metadata.max_keyframes
    goals = empty_goals(1, count)
    goals.step[0] = 50 * np.arange(1, count + 1)
    goals.position[0] = np.arange(1, count + 1)[:, None] * [0.6, 0.0, 0.0]
    goals.presence[0] = [name in policy.metadata.goal_components for name in COMPONENTS]
    goals.posture[0] = policy.metadata.default_joint_pos
    return goals


def _print(name: str, figures: dict[str, Any]) -> None:
    print(f"{name}: {figures['steps']} control steps with {figures['keyframes']} keyframes on one thread")
    print(f"p50 {figures['p50_ms']:.3f} ms, p99 {figures['p99_ms']:.3f} ms, worst {figures['worst_ms']:.3f} ms")
    print(f"p99 is {100 * figures['p99_share']:.2f}% of the {figures['budget_ms']:g} ms budget")
    print(f"of processor time: p50 {figures['p50_cpu_ms']:.3f} ms, p99 {figures['p99_cpu_ms']:.3f} ms")
    if figures["load_average"] > BUSY:
        print(f"other work ran on this machine (load average {figures['load_average']}): expect less when it is idle")
