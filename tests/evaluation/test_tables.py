from dataclasses import replace

from keystride.evaluation.results import Row
from keystride.evaluation.tables import error_cell, suite_table

DISTANCE = Row("matching", "walk", "1", "distance_m", 0.0513, 0.0101, 200, 3, paper=0.048, paper_std=0.011)
YAW = replace(DISTANCE, metric="yaw_deg", mean=1.16, std=0.34, paper=1.209, paper_std=0.384)
MET = replace(DISTANCE, metric="met_share", mean=0.985, paper=None)


def test_a_cell_stands_over_the_papers_and_says_whether_it_is_better() -> None:
    assert error_cell(DISTANCE).ours == "0.051 ± 0.010"
    assert error_cell(DISTANCE).paper == "0.048 ± 0.011"
    assert error_cell(DISTANCE).better is False
    assert error_cell(YAW).ours == "1.2 ± 0.3"
    assert error_cell(YAW).better is True
    assert error_cell(MET).ours == "98%"
    assert error_cell(replace(DISTANCE, paper=None)).better is None
    alike = error_cell(replace(DISTANCE, paper=None, paper_std=None, analogous=0.048, analogous_std=0.011))
    assert (alike.paper, alike.better) == ("analogous: 0.048 ± 0.011", None)


def test_a_line_a_scenario_and_goal_a_column_a_metric() -> None:
    table = suite_table("matching", [DISTANCE, YAW, MET, replace(DISTANCE, goal="2")])
    assert table.headings == ("scenario", "goal", "distance, m", "yaw, deg", "met", "falls")
    assert [cell.ours for cell in table.lines[0]] == ["walk", "1", "0.051 ± 0.010", "1.2 ± 0.3", "98%", "3 of 200"]
    assert [cell.ours for cell in table.lines[1]][3:5] == ["", ""]


def test_style_has_policy_and_clips_side_by_side() -> None:
    rows = [Row("style", who, "all", "duty_factor", mean, 0.1, 9, 0) for who, mean in (("policy", 0.6), ("clips", 0.5))]
    table = suite_table("style", rows)
    assert table.headings == ("", "policy", "clips")
    assert [cell.ours for cell in table.lines[0]] == ["duty factor", "0.6 ± 0.1", "0.5 ± 0.1"]
