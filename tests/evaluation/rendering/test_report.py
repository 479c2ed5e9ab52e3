import re
from dataclasses import replace

from keystride.evaluation.rendering import figures
from keystride.evaluation.rendering.report import Picture, evaluation_page
from keystride.evaluation.scenarios import TIMINGS, TRAJECTORIES
from keystride.evaluation.setting import Contender, Libraries, Setting, run_waypoints
from keystride.evaluation.style import style
from keystride.evaluation.suites import anticipation, generalization, matching, robustness
from keystride.policy.runtime import Policy
from keystride.robot.go2 import GO2

CURVE = {
    "steps": 2_000_000,
    "hours": 0.5,
    "training": {"steps": [1000000, 2000000], "reward/goal": [0.1, 0.2], "survival": [0.9, None], "met": [0.1, 0.5]},
    "evaluation": {"steps": [2000000], "dataset/position": [0.3], "random/position": [0.5]},
}


def test_the_report_holds_every_suite_and_every_figure(
    standing: Policy, position_standing: Policy, libraries: Libraries
) -> None:
    rival = Contender("next", position_standing)
    setting = Setting(GO2, Contender("<standing>", standing), libraries, rival=rival, episodes=3)
    suites = (matching, generalization, anticipation, style, robustness)
    outcomes = {suite.__name__: suite(setting) for suite in suites}
    courses = {one.name: run_waypoints(setting, one, setting.contender) for one in TRAJECTORIES}
    times = {one.name: run_waypoints(setting, one, setting.contender) for one in TIMINGS}
    shown = [Picture("paths", figures.trajectories(courses)), Picture("times", figures.timing(times))]
    page = evaluation_page("<standing>, 3 episodes", outcomes, shown, CURVE)
    assert page.count("<svg") == 2 + 2 + 1 + 1 + 1  # position goals, histograms, anticipation, robustness, learning
    assert page.count("<table") == 5
    assert "<p>&lt;standing&gt;, 3 episodes</p>" in page
    assert not re.search(r"<script|src=", page)


def test_a_single_policy_and_no_curve_make_a_report_too(position_standing: Policy, libraries: Libraries) -> None:
    libraries = replace(libraries, held_out=None)
    setting = Setting(GO2, Contender("standing", position_standing), libraries, episodes=2)
    page = evaluation_page("alone", {"anticipation": anticipation(setting)})
    assert page.count("<svg") == 1
    assert "next goal only" not in page
