"""What each randomised factor costs, alone and all at once."""

from dataclasses import replace

from keystride.evaluation.episodes import World
from keystride.evaluation.results import Subject, rows_of_all_goals
from keystride.evaluation.suites import Outcome, Setting, draw
from keystride.physics.simulator import Randomization

PAPER = Randomization()
# Pushes every 1 to 2 s, so that every episode gets some: the training interval is as long as an episode.
OFTEN = (50, 100)

NOTHING = Randomization(
    friction=(0.8, 0.8),  # the model's own
    stiffness=(1.0, 1.0),
    damping=(1.0, 1.0),
    lag_steps=(0, 0),
    push_speed=(0.0, 0.0),
    push_turn=(0.0, 0.0),
    push_interval=OFTEN,
)

FACTORS: dict[str, Randomization] = {
    "nothing": NOTHING,
    "friction": replace(NOTHING, friction=PAPER.friction),
    "gains": replace(NOTHING, stiffness=PAPER.stiffness, damping=PAPER.damping),
    "lag": replace(NOTHING, lag_steps=PAPER.lag_steps),
    "pushes": replace(NOTHING, push_speed=PAPER.push_speed, push_turn=PAPER.push_turn),
    "everything": replace(PAPER, push_interval=OFTEN),
}


def robustness(setting: Setting) -> Outcome:
    """The same episodes, half with dataset and half with random keyframes, under each factor."""
    rows, rollouts = [], {}
    drawn = draw(setting, "robustness", setting.libraries.dataset, random_share=0.5)
    for name, factor in FACTORS.items():
        rollout = setting.run(name, setting.contender, drawn.start, drawn.goals, World(randomization=factor))
        rollouts[name] = rollout
        rows += rows_of_all_goals(Subject("robustness", name, setting.contender.name), rollout)
    return Outcome(rows, rollouts)
