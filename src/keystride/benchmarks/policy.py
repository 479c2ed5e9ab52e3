"""`keystride benchmark policy`: measure how long a policy takes per control step, with and without in-betweens."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keystride.policy import DEFAULT_POLICY

if TYPE_CHECKING:
    import numpy as np

    from keystride.keyframes.goals import Goals
    from keystride.physics.simulator import State
    from keystride.policy.runtime import Policy
    from keystride.robot.description import Robot

WARM_UP_STEPS = 100
BUSY = 1.5  # load average above which other processes affect wall-clock times
PLANNER_STEPS = 1500  # 30 s: two gaps, then holding the last pose


@dataclass(frozen=True)
class BenchmarkPolicy:
    """Time control steps of a policy on one thread: the network for one robot, and the planner of in-betweens."""

    policy: str = DEFAULT_POLICY
    """Name of a built-in policy, a bundle folder, an ONNX file or a training run."""
    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""
    steps: int = 5000
    """Number of control steps to time."""
    robots: int = 4096
    """Number of robots to time the planner with, in addition to one."""
    json: bool = False
    """Print JSON instead of text."""

    def run(self) -> int:
        from keystride.policy.loading import open_policy
        from keystride.robot.catalogue import load_robot

        robot = load_robot(self.robot)
        policy = open_policy(self.policy, robot=robot)
        figures = measure_policy(policy, robot, self.steps)
        figures["inbetween"] = [measure_planner(policy, robot, robots) for robots in dict.fromkeys((1, self.robots))]
        if self.json:
            import json

            print(json.dumps({"policy": self.policy, **figures}, indent=2))
        else:
            _print(self.policy, figures)
        return 0


def measure_policy(policy: Policy, robot: Robot, steps: int) -> dict[str, Any]:
    """Return percentiles of the time per control step, with as many keyframes as the policy can see."""
    import numpy as np

    state, goals = _standing(robot, 1), _goals(policy)
    action = policy.resting_action(state.joint_angles)
    seconds = np.empty((WARM_UP_STEPS + steps, 2))  # wall clock, and processor time of this thread
    for i in range(len(seconds)):
        start = time.perf_counter(), time.thread_time()
        _, action = policy.step(state, goals, np.array([i % 25]), action)
        seconds[i] = time.perf_counter() - start[0], time.thread_time() - start[1]
    (p50, p50_cpu), (p99, p99_cpu), (worst, _) = np.percentile(seconds[WARM_UP_STEPS:], [50, 99, 100], axis=0).tolist()
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


def measure_planner(policy: Policy, robot: Robot, robots: int) -> dict[str, Any]:
    """Return the time that the planner of in-betweens takes for two long gaps and for holding the last pose."""
    import numpy as np

    from keystride.keyframes.resolve import script_goals
    from keystride.keyframes.script import Keyframe, Script
    from keystride.policy.guide import Guide

    script = Script(keyframes=(Keyframe(time=5.0, position=(0.0, 0.0)), Keyframe(time=15.0, yaw=90.0)))
    state, goals = _standing(robot, robots), script_goals(script, np.zeros((robots, 2)), robot=robot)
    guide = Guide(policy, robot)
    seconds = np.array([_planner_seconds(guide, state, goals, np.full(robots, i)) for i in range(PLANNER_STEPS)])
    return {
        "robots": robots,
        "mean_ms": round(1000 * float(seconds.mean()), 4),
        "worst_ms": round(1000 * float(seconds.max()), 4),
        "mean_us_per_robot": round(1e6 * float(seconds.mean()) / robots, 3),
    }


def _planner_seconds(guide: Any, state: State, goals: Goals, now: np.ndarray) -> float:
    """Return the CPU time of one planner step, which excludes other processes."""
    start = time.thread_time()
    guide.seen(state, goals, now)
    return time.thread_time() - start


def _standing(robot: Robot, robots: int) -> State:
    import numpy as np

    from keystride.physics.simulator import State, standing_start
    from keystride.robot.kinematics import feet_from_joints, standing_height

    start = standing_start(robots, float(standing_height(robot, robot.stance)), robot.stance)
    return State(
        start.position,
        start.orientation,
        start.linear_velocity,
        start.angular_velocity,
        start.joint_angles,
        start.joint_velocities,
        feet=feet_from_joints(robot, start.joint_angles),
        contact=np.zeros((robots, 4)),
        torque=np.zeros((robots, 12)),
        diverged=np.zeros(robots, dtype=bool),
    )


def _goals(policy: Policy) -> Goals:
    """Return a straight walk with a keyframe every second, with all components that the policy was trained on."""
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
    print(f"CPU time: p50 {figures['p50_cpu_ms']:.3f} ms, p99 {figures['p99_cpu_ms']:.3f} ms")
    for row in figures["inbetween"]:
        print(
            f"in-betweens for {row['robots']} robot{'s' * (row['robots'] > 1)}: {row['mean_ms']:.3f} ms per control step on average "
            f"({row['mean_us_per_robot']:.2f} us per robot), at most {row['worst_ms']:.2f} ms"
        )
    if figures["load_average"] > BUSY:
        print(f"the machine is busy (load average {figures['load_average']}): expect shorter times on an idle one")
