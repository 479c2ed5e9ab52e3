"""The functions that `import keystride` provides. Only training needs torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keystride.evaluation.recording import Recording, play_script
from keystride.evaluation.results import Row
from keystride.keyframes.files import load_script
from keystride.keyframes.script import Script
from keystride.policy import DEFAULT_POLICY
from keystride.policy.loading import open_policy
from keystride.policy.runtime import Policy
from keystride.robot.catalogue import DEFAULT_ROBOT, load_robot
from keystride.robot.description import Robot

if TYPE_CHECKING:
    from keystride.gym_env import KeyframeVectorEnv
    from keystride.task.config import TaskConfig
    from keystride.task.rewards import Reward


def load_policy(name_or_path: str | Path = DEFAULT_POLICY, *, robot: Robot | str | Path = DEFAULT_ROBOT) -> Policy:
    """Return a policy: one that ships, by its name, a bundle folder, an ONNX file, or a training run (which needs torch)."""
    return open_policy(name_or_path, robot=_robot(robot))


def play(
    script: Script | str | Path,
    policy: Policy | str | Path = DEFAULT_POLICY,
    *,
    robot: Robot | str | Path = DEFAULT_ROBOT,
    title: str | None = None,
) -> Recording:
    """Simulate a script and return the recording, with the errors at every keyframe.

    The script is a `Script`, a file, or the name of an example such as "walk". The robot starts in its stance at the origin,
    facing x.
    """
    robot = _robot(robot)
    name = "script" if isinstance(script, Script) else Path(script).stem
    script = script if isinstance(script, Script) else load_script(script, robot)
    label = "policy" if isinstance(policy, Policy) else Path(policy).name
    policy = policy if isinstance(policy, Policy) else open_policy(policy, robot=robot)
    return play_script(policy, robot, script, title=title or name, policy=label)


def evaluate(
    policy: Policy | str | Path = DEFAULT_POLICY,
    suites: Sequence[str] = ("matching", "generalization"),
    *,
    episodes: int = 256,
    library: Sequence[Path] = (),
    unseen: Sequence[Path] = (),
    seed: int = 0,
    robot: Robot | str | Path = DEFAULT_ROBOT,
) -> list[Row]:
    """Measure a policy on the suites of `keystride evaluate` and return one row for each metric.

    `library` and `unseen` are folders of clips made by `keystride motion import`; the clips that ship are always included.
    """
    from keystride.evaluation.setting import Contender, Setting, load_libraries
    from keystride.evaluation.suites import SUITES, run_suites

    unknown = sorted(set(suites) - set(SUITES))
    if unknown:
        raise ValueError(f"unknown suite {unknown[0]!r}; choose from {', '.join(SUITES)}")
    robot = _robot(robot)
    name = "policy" if isinstance(policy, Policy) else Path(policy).name
    policy = policy if isinstance(policy, Policy) else open_policy(policy, robot=robot)
    setting = Setting(
        robot, Contender(name, policy), load_libraries(robot, library, unseen), episodes=episodes, seed=seed
    )
    return [row for outcome in run_suites(suites, setting).values() for row in outcome.rows]


def make_env(
    num_envs: int = 64,
    *,
    task: "TaskConfig | None" = None,
    library: Sequence[Path] = (),
    flat: bool = True,
    reward_weights: Mapping[str, float] | None = None,
    rewards: "Mapping[str, Reward] | None" = None,
    seed: int = 0,
    robot: Robot | str | Path = DEFAULT_ROBOT,
) -> "KeyframeVectorEnv":
    """Return the keyframe task as a Gymnasium vector environment. Needs the `gym` extra.

    With `flat`, an observation is one vector for each robot, otherwise a dict of state, goals and visible. The reward is the sum
    of the task's rewards with `reward_weights`; `rewards` adds functions of your own (`keystride.task.rewards.Reward`).
    """
    from keystride.evaluation.setting import load_libraries
    from keystride.gym_env import KeyframeVectorEnv
    from keystride.task.config import TaskConfig

    robot = _robot(robot)
    dataset = load_libraries(robot, library).dataset
    return KeyframeVectorEnv(
        robot,
        dataset,
        task or TaskConfig(),
        num_envs,
        flat=flat,
        reward_weights=reward_weights,
        rewards=rewards,
        seed=seed,
    )


def _robot(robot: Robot | str | Path) -> Robot:
    return robot if isinstance(robot, Robot) else load_robot(robot)
