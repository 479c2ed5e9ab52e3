"""The setting of an evaluation: the policy and its rival, the motion libraries, and how episodes are sampled and simulated."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from keystride.evaluation.episodes import SECONDS_AFTER, EpisodeRollout, Progress, World, noisy_stance, run_episodes
from keystride.evaluation.results import Row
from keystride.evaluation.scenarios import Waypoints
from keystride.keyframes.goals import COMPONENTS, Goals, with_components
from keystride.motion.authored.catalogue import authored_clips
from keystride.motion.clip import Clip
from keystride.motion.library import INDEX, Library, load_library_clips
from keystride.physics.simulator import StartState
from keystride.policy.runtime import Policy
from keystride.robot.description import Robot
from keystride.task.config import TaskConfig
from keystride.task.sampling import Episodes, EpisodeSampler

Watch = Callable[[str], AbstractContextManager[Progress]]  # shows the progress of a scenario, given its name


@dataclass(frozen=True)
class Contender:
    """A policy and its name."""

    name: str
    policy: Policy

    @property
    def components(self) -> tuple[str, ...]:
        return self.policy.metadata.goal_components

    @property
    def full_poses(self) -> bool:
        """Return whether the policy was trained on full poses, like the paper's."""
        return set(self.components) == set(COMPONENTS)


@dataclass(frozen=True)
class Libraries:
    """The clips that keyframes are sampled from."""

    dataset: Library  # seen in training
    held_out: Library | None = None  # clips of the same source, held out of training
    unseen: Library | None = None  # clips of another source
    captured: bool = False  # whether the dataset contains motion capture, like the paper's


@dataclass(frozen=True)
class Setting:
    """The settings that all suites share."""

    robot: Robot
    contender: Contender
    libraries: Libraries
    rival: Contender | None = None  # sees the next goal only
    episodes: int = 256
    seed: int = 0
    threads: int = 0
    inbetween: bool = True
    watch: Watch = lambda _: nullcontext(lambda _: None)

    def random(self, name: str) -> np.random.Generator:
        """Return a generator that depends only on the seed and the name of the scenario."""
        return np.random.default_rng([self.seed, *name.encode()])

    def run(
        self,
        name: str,
        who: Contender,
        start: StartState,
        goals: Goals,
        world: World | None = None,
        *,
        seconds_after: float = SECONDS_AFTER,
    ) -> EpisodeRollout:
        """Simulate one episode per start state."""
        world = replace(world or World(), seed=self.seed, threads=self.threads)
        with self.watch(name) as progress:
            return run_episodes(
                who.policy,
                self.robot,
                start,
                restricted_goals(goals, who.components),
                world=world,
                progress=progress,
                inbetween=self.inbetween,
                seconds_after=seconds_after,
            )


@dataclass(frozen=True)
class SuiteOutcome:
    rows: list[Row]
    rollouts: Mapping[str, EpisodeRollout]  # by scenario


def restricted_goals(goals: Goals, components: tuple[str, ...]) -> Goals:
    """Return the goals with only these components: a policy cannot see those that it was not trained on."""
    return with_components(goals, goals.presence & np.isin(COMPONENTS, components))


def run_waypoints(setting: Setting, scenario: Waypoints, who: Contender) -> EpisodeRollout:
    """Simulate a scenario of position goals from perturbed stances."""
    start = noisy_stance(setting.robot, setting.episodes, setting.random(scenario.name))
    return setting.run(scenario.name, who, start, scenario.goals(setting.robot, setting.episodes))


def draw_episodes(
    setting: Setting,
    name: str,
    library: Library,
    random_share: float,
    *,
    reference_start: float = 0.8,
    fewest_keyframes: int = 1,
) -> Episodes:
    """Sample episodes as in training, with the paper's ranges; `reference_start` is the share that starts in a frame of a clip."""
    metadata = setting.contender.policy.metadata
    config = TaskConfig(
        goals="position" if set(metadata.goal_components) == {"position"} else "pose",
        max_keyframes=metadata.max_keyframes,
        reference_start=reference_start,
    )
    config = replace(config, ranges=replace(config.ranges, count=(fewest_keyframes, metadata.max_keyframes)))
    return EpisodeSampler(setting.robot, library, config).draw(setting.random(name), setting.episodes, random_share)


def load_libraries(
    robot: Robot, folders: Sequence[Path], unseen: Sequence[Path] = (), *, authored: bool = True
) -> Libraries:
    """Return the libraries in these folders, plus the built-in clips if `authored` is set or no folder is given.

    Raise FileNotFoundError for a folder that contains no library.
    """
    for folder in (*folders, *unseen):
        if not (folder / INDEX).is_file():
            raise FileNotFoundError(2, "no motion library (`keystride motion import` creates one)", str(folder))
    train = [clip for folder in folders for clip in load_library_clips(folder, "train")]
    if authored or not train:
        train += authored_clips(robot)
    held_out = [clip for folder in folders for clip in load_library_clips(folder, "held_out")]
    foreign = [clip for folder in unseen for clip in load_library_clips(folder)]
    return Libraries(Library(robot, train), _maybe(robot, held_out), _maybe(robot, foreign), captured=bool(folders))


def _maybe(robot: Robot, clips: list[Clip]) -> Library | None:
    return Library(robot, clips) if clips else None
