import json

import pytest

from keystride.commands.main import main


def test_figures_of_a_few_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "forecast", "--scripts", "4", "--rollouts", "2", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    met = figures["met_share"]
    assert 0 <= met <= 1
    assert figures["base_rate_brier"] == pytest.approx(met * (1 - met), abs=1e-3)
    assert 0 <= figures["rollout_brier"] <= 1
    assert figures["control_steps_per_second"] > 0


def test_an_unknown_policy_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "forecast", "--policy", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
