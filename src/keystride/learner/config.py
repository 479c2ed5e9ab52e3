"""How to learn, as data. A preset is a complete configuration; torch is not needed to read it."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class RewardGroup:
    """One critic: the rewards it judges with their weights in the sum, and the weight of its advantage."""

    name: str
    advantage_weight: float
    rewards: tuple[tuple[str, float], ...]


MULTI_CRITIC = (
    RewardGroup("goal", 0.5, (("goal", 1.0),)),
    RewardGroup("style", 0.5, (("style", 1.0),)),
    RewardGroup("regularization", 0.1, (("regularization", 1.0),)),
)
"""Paper, reward terms: equal weights for goal and style, a lower one for regularisation."""

SINGLE_CRITIC = (RewardGroup("all", 1.0, (("goal", 25.0), ("style", 0.5), ("regularization", 0.1))),)
"""The baseline: one critic for the weighted sum. The sparse goal has to be weighed by hand against its interval."""


@dataclass(frozen=True)
class NetworkConfig:
    width: int = 0
    """Width of a token inside the encoder; 0 keeps the token as it is, as in the paper."""
    layers: int = 2
    heads: int = 1
    feedforward: int = 512
    mlp: tuple[int, ...] = (512, 256)
    state_to_mlp: bool = False
    """Hand the state to the MLP beside the pooled token, so that a narrow encoder does not squeeze it."""
    next_by: int | None = None
    """Column of a keyframe's token that tells how long until it is due. The keyframe due next is then handed to the MLP too:
    a dozen joint angles do not fit through the pooled token of a narrow encoder."""
    critics: Literal["separate", "shared"] = "separate"
    """A whole network for each critic, or one network with an output for each."""
    initial_std: float = 1.0
    std_floor: tuple[float, float] = (0.05, 0.05)
    """Least standard deviation of the actions, at the start and at the end of the floor's schedule."""
    std_floor_steps: int = 1
    """Control steps over which the floor falls from the first to the second."""


@dataclass(frozen=True)
class PpoConfig:
    groups: tuple[RewardGroup, ...] = MULTI_CRITIC
    """Set by --critic."""
    epochs: int = 5
    critic_epochs: int = 5
    """The first so many epochs teach the critics too."""
    minibatches: int = 4
    learning_rate: float = 1e-4
    learning_rate_range: tuple[float, float] = (1e-5, 2e-3)
    target_kl: float = 0.02
    entropy: float = 0.02
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    """The paper names no value."""
    max_gradient_norm: float = 1.0
    symmetry: bool = False
    """Show every second sample mirrored left to right."""


@dataclass(frozen=True)
class DiscriminatorConfig:
    """Paper, hyperparameters; sizes of the network and the penalty are ours."""

    hidden: tuple[int, ...] = (1024, 512)
    learning_rate: float = 3e-4
    updates: int = 20
    """Gradient steps an iteration."""
    batch: int = 768
    gradient_penalty: float = 5.0
    weight_decay: float = 1e-4
    replay: int = 200_000
    """Policy transitions kept, over all processes."""


@dataclass(frozen=True)
class LearnerConfig:
    environments: int = 4096
    """Robots, over all processes."""
    horizon: int = 24
    """Control steps an iteration."""
    steps: int = 500_000_000
    """Control steps after which training ends."""
    average: float = 0.0
    """The policy that is evaluated and exported is a running mean of the weights; this share of it stays at each iteration."""
    seed: int = 0
    checkpoint_minutes: float = 3.0
    keep: int = 3
    """Checkpoints kept."""
    evaluate_steps: int = 4_000_000
    """Control steps between evaluations on fixed episodes."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)


PAPER = LearnerConfig()
"""Every figure of the paper's hyperparameter table."""

CPU = LearnerConfig(
    environments=1024,
    average=0.98,
    network=NetworkConfig(
        width=32,
        feedforward=128,
        mlp=(256, 128),
        state_to_mlp=True,
        next_by=18,  # after the 18 errors of keyframes.goals.goal_observation
        critics="shared",
        initial_std=0.5,
        std_floor=(0.25, 0.08),
        std_floor_steps=100_000_000,
    ),
    ppo=PpoConfig(
        epochs=2, critic_epochs=1, minibatches=2, learning_rate=5e-4, target_kl=0.02, entropy=0.01, symmetry=True
    ),
    discriminator=DiscriminatorConfig(hidden=(256, 128), updates=4, batch=768, replay=100_000),
)
"""The paper's design, sized for two cores."""

PRESETS = {"cpu": CPU, "paper": PAPER}
