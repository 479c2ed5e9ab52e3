"""The evaluation suites: each runs a policy on its scenarios and returns result rows and rollouts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from keystride.evaluation import paper
from keystride.evaluation.episodes import SECONDS_AFTER, EpisodeRollout, Progress, World, noisy_stance, run_episodes
from keystride.evaluation.gait import airborne_seconds, flight_rows
from keystride.evaluation.results import NO_CELLS, Row, Subject, rows_of_all_goals, rows_of_goal
from keystride.evaluation.scenarios import ANTICIPATION_SCENARIOS, MATCHING_SCENARIOS, Waypoints
from keystride.keyframes.goals import COMPONENTS, Goals, with_components
from keystride.motion.authored.catalogue import authored_clips
from keystride.motion.clip import Clip
from keystride.motion.library import INDEX, Library, load_library_clips
from keystride.physics.simulator import Randomization, StartState
from keystride.policy.runtime import Policy
from keystride.robot.description import Robot
from keystride.task.config import TaskConfig
from keystride.task.sampling import Episodes, EpisodeSampler

NEXT_ONLY = " (next goal only)"  # appended to a scenario's name

Watch = Callable[[str], AbstractContextManager[Progress]]  # shows the progress of a scenario, given its name
PAPER_RANDOMIZATION = Randomization()
# Every 1 to 2 s, so that every episode has some: the interval in training is as long as an episode.
FREQUENT_PUSHES = (50, 100)
NO_RANDOMIZATION = Randomization(
    friction=(0.8, 0.8),  # the model's own
    stiffness=(1.0, 1.0),
    damping=(1.0, 1.0),
    lag_steps=(0, 0),
    push_speed=(0.0, 0.0),
    push_turn=(0.0, 0.0),
    push_interval=FREQUENT_PUSHES,
)
FACTORS: dict[str, Randomization] = {
    "nothing": NO_RANDOMIZATION,
    "friction": replace(NO_RANDOMIZATION, friction=PAPER_RANDOMIZATION.friction),
    "gains": replace(NO_RANDOMIZATION, stiffness=PAPER_RANDOMIZATION.stiffness, damping=PAPER_RANDOMIZATION.damping),
    "lag": replace(NO_RANDOMIZATION, lag_steps=PAPER_RANDOMIZATION.lag_steps),
    "pushes": replace(
        NO_RANDOMIZATION, push_speed=PAPER_RANDOMIZATION.push_speed, push_turn=PAPER_RANDOMIZATION.push_turn
    ),
    "everything": replace(PAPER_RANDOMIZATION, push_interval=FREQUENT_PUSHES),
}


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


def matching(setting: Setting) -> SuiteOutcome:
    """Match full poses: a walk with two goals, a jump, and a raised paw, analogous to the paper's, which are unpublished."""
    rows, rollouts = [], {}
    for scenario in MATCHING_SCENARIOS:
        name = scenario.name
        start = noisy_stance(setting.robot, setting.episodes, setting.random(name))
        goals = scenario.goals(setting.robot, setting.episodes)
        rollout = rollouts[name] = setting.run(name, setting.contender, start, goals)
        subject = Subject("matching", name, setting.contender.name)
        for goal in range(1, len(scenario.frames) + 1):
            cells = paper.PAPER_MATCHING.get((name, goal), NO_CELLS) if setting.contender.full_poses else NO_CELLS
            leap = name == "jump" and goal == 1
            valid = airborne_seconds(setting.robot, rollout) > 0 if leap else None
            rows += rows_of_goal(subject, rollout, goal, cells, same=False, valid=valid)
        if name == "jump":
            rows += flight_rows(subject, setting.robot, rollout)
    return SuiteOutcome(rows, rollouts)


def generalization(setting: Setting) -> SuiteOutcome:
    """Reach keyframes from the training clips, random keyframes, and keyframes from held-out and unseen clips."""
    rows, rollouts = [], {}
    for name, library, random_share in _sources(setting.libraries):
        drawn = draw_episodes(setting, name, library, random_share)
        rollout = rollouts[name] = setting.run(name, setting.contender, drawn.start, drawn.goals)
        subject = Subject("generalization", name, setting.contender.name)
        comparable = setting.contender.full_poses and setting.libraries.captured
        rows += rows_of_all_goals(
            subject, rollout, paper.GENERALIZATION.get(name, NO_CELLS) if comparable else NO_CELLS
        )
    return SuiteOutcome(rows, rollouts)


def anticipation(setting: Setting) -> SuiteOutcome:
    """Reach two consecutive goals, with the policy and with one that sees only the next goal."""
    rows, rollouts = [], {}
    for scenario in ANTICIPATION_SCENARIOS:
        for who, suffix in _rivals(setting):
            name = scenario.name + suffix
            rollout = rollouts[name] = run_waypoints(setting, scenario, who)
            for goal in (1, 2):
                cells = paper.PAPER_ANTICIPATION[who.policy.metadata.see, scenario.name, goal]
                rows += rows_of_goal(Subject("anticipation", name, who.name), rollout, goal, cells)
    return SuiteOutcome(rows, rollouts)


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


def _sources(libraries: Libraries) -> Iterator[tuple[str, Library, float]]:
    yield "dataset", libraries.dataset, 0.0
    yield "random", libraries.dataset, 1.0
    if libraries.held_out is not None:
        yield "held out", libraries.held_out, 0.0
    if libraries.unseen is not None:
        yield "unseen", libraries.unseen, 0.0


def _rivals(setting: Setting) -> Iterator[tuple[Contender, str]]:
    yield setting.contender, ""
    if setting.rival is not None:
        yield setting.rival, NEXT_ONLY


def robustness(setting: Setting) -> SuiteOutcome:
    """Run the same episodes, half with keyframes from clips and half with random ones, under each randomized factor."""
    rows, rollouts = [], {}
    drawn = draw_episodes(setting, "robustness", setting.libraries.dataset, random_share=0.5)
    for name, factor in FACTORS.items():
        rollout = setting.run(name, setting.contender, drawn.start, drawn.goals, World(randomization=factor))
        rollouts[name] = rollout
        rows += rows_of_all_goals(Subject("robustness", name, setting.contender.name), rollout)
    return SuiteOutcome(rows, rollouts)


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
