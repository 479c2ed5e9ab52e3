"""docs/metrics.md explains every metric that a run writes."""

import json
import re
from dataclasses import replace
from pathlib import Path

from keystride.keyframes.goals import COMPONENTS
from keystride.training import TrainingConfig, TrainingStage, train
from keystride.training.build import KEYFRAME_KINDS

GLOSSARY = Path(__file__).parents[2] / "docs" / "metrics.md"


def explained(config: TrainingConfig) -> set[str]:
    groups = config.learner.ppo.groups
    choices = {
        "component": COMPONENTS,
        "kind": KEYFRAME_KINDS,
        "group": [group.name for group in groups],
        "reward": [name for group in groups for name, _ in group.rewards],
    }
    names = set(re.findall(r"^\| `([^`]+)` \|", GLOSSARY.read_text(), flags=re.MULTILINE))
    for placeholder, values in choices.items():
        names = {name.replace(f"{{{placeholder}}}", value) for name in names for value in values}
    return names


def test_every_metric_is_explained(tiny: TrainingConfig) -> None:
    ranges = replace(tiny.task.ranges, interval_steps=(3, 5), everyday_share=0.2)
    config = replace(
        tiny, task=replace(tiny.task, goals="any", ranges=ranges, tail_steps=(2, 4)), stages=(TrainingStage("only"),)
    )
    config = replace(config, evaluation=replace(tiny.evaluation, robots=8, control_steps=60))
    train(config)
    rows = [json.loads(line) for line in (config.folder / "metrics.jsonl").read_text().splitlines()]
    written = {name for row in rows for name in row}
    assert {"stage", "kernel_error/posture", "reward/stillness", "survival"} <= written
    assert any(name.startswith("evaluation/everyday/") for name in written)
    assert written - explained(config) == set()
