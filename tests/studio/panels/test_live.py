"""The Live panel in a browser: why a step is closed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keystride.robot.catalogue import robot_text
from keystride.robot.go2 import GO2


@pytest.fixture
def page(shared_page: Any) -> Any:
    return shared_page


def test_the_live_tab_says_why_no_step_can_begin(page: Any, make_server: Any, open_page: Any, tmp_path: Path):
    page.open_panel("Live")
    page.tab.locator(".ks-steps .ks-doubt", has_text="choose a policy on the Stage tab").wait_for()
    description = tmp_path / "other.yaml"
    description.write_text(robot_text(replace(GO2, name="other", stiffness=60.0)))
    server = make_server(tmp_path, options=("--robot", str(description)))
    other = open_page(server.url)
    other.open_panel("Live")
    other.tab.locator(".ks-steps .ks-doubt", has_text="started for another robot").wait_for()
    server.check()
    server.stop()
