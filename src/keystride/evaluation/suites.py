"""The suites: each runs its scenarios under a policy and returns rows and what happened."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np

from keystride.evaluation import paper
from keystride.evaluation.body import airborne_seconds, flight_rows
from keystride.evaluation.episodes import SECONDS_AFTER, Progress, Rollout, World, run_episodes
from keystride.evaluation.initial_states import noisy_stance
from keystride.evaluation.libraries import Libraries
from keystride.evaluation.results import NO_CELLS, Row, Subject, rows_of_all_goals, rows_of_goal
from keystride.evaluation.scenarios import ANTICIPATION, MATCHING, Waypoints
from keystride.keyframes.goals import COMPONENTS, Goals
from keystride.motion.library import Library
from keystride.physics.simulator import StartState
from keystride.policy.runtime import Policy
from keystride.robot.description import Robot
from keystride.task.config import TaskConfig
from keystride.task.sampling import Episodes, EpisodeSampler

NEXT_ONLY = " (next goal only)"  # appended to a scenario's name

Watch = Callable[[str], AbstractContextManager[Progress]]  # shows how far the run of that name is


@dataclass(frozen=True)
class Contender:
    """A policy and what it is called."""

    name: str
    policy: Policy

    @property
    def components(self) -> tuple[str, ...]:
        return self.policy.metadata.goal_components

    @property
    def full_poses(self) -> bool:
        """Whether it is asked for full poses, as the paper's policy is in its tables of poses."""
        return set(self.components) == set(COMPONENTS)


@dataclass(frozen=True)
class Setting:
    """What all suites share."""

    robot: Robot
    contender: Contender
    libraries: Libraries
    rival: Contender | None = None  # aware of the next goal only
    episodes: int = 256
    seed: int = 0
    threads: int = 0
    inbetween: bool = True
    watch: Watch = lambda _: nullcontext(lambda _: None)

    def random(self, name: str) -> np.random.Generator:
        """The same for a scenario's name, whatever else is evaluated."""
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
    ) -> Rollout:
        world = replace(world or World(), seed=self.seed, threads=self.threads)
        with self.watch(name) as progress:
            return run_episodes(
                who.policy,
                self.robot,
                start,
                heeded(goals, who.components),
                world=world,
                progress=progress,
                inbetween=self.inbetween,
                seconds_after=seconds_after,
            )


@dataclass(frozen=True)
class Outcome:
    rows: list[Row]
    rollouts: Mapping[str, Rollout]  # by scenario


def heeded(goals: Goals, components: tuple[str, ...]) -> Goals:
    """Only the components that a policy knows of; the others would be missed by anyone who does not see them."""
    known = np.isin(COMPONENTS, components)
    presence = goals.presence & known
    return Goals(
        step=goals.step,
        position=goals.position * presence[..., :1],
        angles=goals.angles * presence[..., 1:4],
        posture=goals.posture * presence[..., 4:],
        presence=presence,
        height=goals.height & presence[..., 0],
    )


def matching(setting: Setting) -> Outcome:
    """Full poses: walk with two goals, jump, paw up. The paper's own poses are unpublished; these are analogous."""
    rows, rollouts = [], {}
    for take in MATCHING:
        start = noisy_stance(setting.robot, setting.episodes, setting.random(take.name))
        goals = take.goals(setting.robot, setting.episodes)
        rollout = rollouts[take.name] = setting.run(take.name, setting.contender, start, goals)
        subject = Subject("matching", take.name, setting.contender.name)
        for goal in range(1, len(take.frames) + 1):
            cells = paper.MATCHING.get((take.name, goal), NO_CELLS) if setting.contender.full_poses else NO_CELLS
            leap = take.name == "jump" and goal == 1
            counts = airborne_seconds(setting.robot, rollout) > 0 if leap else None
            rows += rows_of_goal(subject, rollout, goal, cells, same=False, counts=counts)
        if take.name == "jump":
            rows += flight_rows(subject, setting.robot, rollout)
    return Outcome(rows, rollouts)


def generalization(setting: Setting) -> Outcome:
    """Keyframes of the training clips, random ones, and those of clips never seen."""
    rows, rollouts = [], {}
    for name, library, random_share in _sources(setting.libraries):
        drawn = draw(setting, name, library, random_share)
        rollout = rollouts[name] = setting.run(name, setting.contender, drawn.start, drawn.goals)
        subject = Subject("generalization", name, setting.contender.name)
        comparable = setting.contender.full_poses and setting.libraries.captured
        rows += rows_of_all_goals(
            subject, rollout, paper.GENERALIZATION.get(name, NO_CELLS) if comparable else NO_CELLS
        )
    return Outcome(rows, rollouts)


def anticipation(setting: Setting) -> Outcome:
    """Two goals in a row, for a policy that sees both and for one that sees the next only."""
    rows, rollouts = [], {}
    for scenario in ANTICIPATION:
        for who, sight, suffix in _rivals(setting):
            name = scenario.name + suffix
            rollout = rollouts[name] = run_waypoints(setting, scenario, who)
            for goal in (1, 2):
                cells = paper.ANTICIPATION[sight, scenario.name, goal]
                rows += rows_of_goal(Subject("anticipation", name, who.name), rollout, goal, cells)
    return Outcome(rows, rollouts)


def run_waypoints(setting: Setting, scenario: Waypoints, who: Contender) -> Rollout:
    start = noisy_stance(setting.robot, setting.episodes, setting.random(scenario.name))
    return setting.run(scenario.name, who, start, scenario.goals(setting.episodes))


def draw(
    setting: Setting,
    name: str,
    library: Library,
    random_share: float,
    *,
    reference_start: float = 0.8,
    fewest_keyframes: int = 1,
) -> Episodes:
    """Episodes as in training: the paper's ranges, most robots started in a frame of a clip."""
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


def _rivals(setting: Setting) -> Iterator[tuple[Contender, str, str]]:
    yield setting.contender, "all", ""
    if setting.rival is not None:
        yield setting.rival, "next", NEXT_ONLY
