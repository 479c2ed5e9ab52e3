"""The evaluation suites: each runs a policy on its scenarios and returns result rows and rollouts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from keystride import geometry
from keystride.evaluation.episodes import EpisodeRollout, World, noisy_stance
from keystride.evaluation.gait import airborne_seconds, flight_rows, motor_rows
from keystride.evaluation.results import (
    NO_CELLS,
    PAPER_ANTICIPATION,
    PAPER_GENERALIZATION,
    PAPER_MATCHING,
    Row,
    Subject,
    rows_of_all_goals,
    rows_of_goal,
    single_row,
)
from keystride.evaluation.scenarios import ANTICIPATION_SCENARIOS, EVERYDAY_SCRIPTS, MATCHING_SCENARIOS, EverydayScript
from keystride.evaluation.setting import Contender, Libraries, Setting, SuiteOutcome, draw_episodes, run_waypoints
from keystride.evaluation.style import style
from keystride.keyframes.goals import CONTROL_DT
from keystride.keyframes.resolve import script_goals
from keystride.keyframes.script import Script
from keystride.motion.library import Library
from keystride.physics.simulator import Randomization
from keystride.robot.description import Floats

NEXT_ONLY = " (next goal only)"  # appended to a scenario's name
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
            cells = PAPER_MATCHING.get((name, goal), NO_CELLS) if setting.contender.full_poses else NO_CELLS
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
            subject, rollout, PAPER_GENERALIZATION.get(name, NO_CELLS) if comparable else NO_CELLS
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
                cells = PAPER_ANTICIPATION[who.policy.metadata.see, scenario.name, goal]
                rows += rows_of_goal(Subject("anticipation", name, who.name), rollout, goal, cells)
    return SuiteOutcome(rows, rollouts)


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


def everyday(setting: Setting) -> SuiteOutcome:
    """Measure errors, keyframes met, falls, and how far the robot drifts while it has to stand still."""
    rows, rollouts = [], {}
    for script in EVERYDAY_SCRIPTS:
        start = noisy_stance(setting.robot, setting.episodes, setting.random(script.name))
        goals = script_goals(Script(keyframes=script.keyframes), np.zeros((setting.episodes, 2)), robot=setting.robot)
        rollout = setting.run(script.name, setting.contender, start, goals, seconds_after=script.seconds_after)
        rollouts[script.name] = rollout
        rows += _everyday_rows(script, rollout, setting.contender.name)
    return SuiteOutcome(rows, rollouts)


def _everyday_rows(script: EverydayScript, rollout: EpisodeRollout, policy: str) -> list[Row]:
    subject = Subject("everyday", script.name, policy)
    still = slice(round(script.still_from / CONTROL_DT), None)
    metres, degrees = drift(rollout.trace.position[still], rollout.trace.orientation[still])
    episodes, falls = len(rollout.fell), rollout.falls
    return [
        *rows_of_all_goals(subject, rollout),
        single_row(subject, "drift_m", metres, episodes=episodes, falls=falls),
        single_row(subject, "drift_deg", degrees, episodes=episodes, falls=falls),
    ]


def drift(position: Floats, orientation: Floats) -> tuple[Floats, Floats]:
    """Return the largest horizontal distance (E,) in m and yaw (E,) in degrees from the first of T poses (T, E, ...)."""
    away = np.linalg.norm(position[..., :2] - position[:1, :, :2], axis=-1)
    yaw = geometry.yaw_of(orientation)
    return away.max(axis=0), np.degrees(np.abs(geometry.wrap(yaw - yaw[:1]))).max(axis=0)


def robustness(setting: Setting) -> SuiteOutcome:
    """Run the same episodes, half with keyframes from clips and half with random ones, under each randomized factor."""
    rows, rollouts = [], {}
    drawn = draw_episodes(setting, "robustness", setting.libraries.dataset, random_share=0.5)
    for name, factor in FACTORS.items():
        rollout = setting.run(name, setting.contender, drawn.start, drawn.goals, World(randomization=factor))
        rollouts[name] = rollout
        rows += rows_of_all_goals(Subject("robustness", name, setting.contender.name), rollout)
    return SuiteOutcome(rows, rollouts)


SUITES: dict[str, Callable[[Setting], SuiteOutcome]] = {
    "matching": matching,
    "generalization": generalization,
    "anticipation": anticipation,
    "everyday": everyday,
    "style": style,
    "robustness": robustness,
}


def run_suites(names: Iterable[str], setting: Setting) -> dict[str, SuiteOutcome]:
    """Return the outcome of each suite by name, and under `motors` the joint speeds in all of them."""
    outcomes = {name: SUITES[name](setting) for name in names}
    rollouts = {name: list(outcome.rollouts.values()) for name, outcome in outcomes.items()}
    outcomes["motors"] = SuiteOutcome(motor_rows(setting.robot, rollouts, setting.contender.name), {})
    return outcomes
