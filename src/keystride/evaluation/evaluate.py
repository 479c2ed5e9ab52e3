"""Evaluate a policy on the suites, by name."""

from collections.abc import Callable, Iterable

from keystride.evaluation.everyday import everyday
from keystride.evaluation.gait import motor_rows
from keystride.evaluation.style import style
from keystride.evaluation.suites import Setting, SuiteOutcome, anticipation, generalization, matching, robustness

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
