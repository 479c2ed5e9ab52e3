"""The learner's settings and presets. No torch in here: a configuration can be read without it."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class RewardGroup:
    """One critic: its rewards with their weights in the sum, and the weight of its advantage."""

    name: str
    """Name of the group in metrics and in the exported critic."""
    advantage_weight: float
    """Weight of the group's standardized advantage in the policy's gradient."""
    rewards: tuple[tuple[str, float], ...]
    """Names of rewards (style, or an entry of task.rewards.REWARDS) and their weights in the group's sum.
    Samples where a reward does not apply are left out."""
    lam: float | None = None
    """GAE's lambda for this group. None: learner.ppo.lam."""


MULTI_CRITIC = (
    RewardGroup("goal", 0.5, (("goal", 1.0),)),
    RewardGroup("style", 0.5, (("style", 1.0),)),
    RewardGroup("regularization", 0.1, (("regularization", 1.0),)),
)
"""Paper, reward terms: equal weights for goal and style, a lower one for regularization."""

WITH_DEMONSTRATIONS = (
    RewardGroup(
        "goal", 1.0, (("goal", 1.0),), lam=0.98
    ),  # keyframes are farther apart than 1 / (1 - 0.99 * 0.95) steps
    RewardGroup("style", 0.5, (("style", 1.0),)),
    RewardGroup("regularization", 0.1, (("regularization", 1.0),)),
    RewardGroup("tracking", 0.3, (("tracking", 1.0),)),
    RewardGroup("stillness", 0.3, (("stillness", 1.0),)),
    RewardGroup("pace", 1.0, (("pace", 1.0),)),
)
"""The paper's groups and three dense ones: following a clip, standing still after the last keyframe, and moving at the pace that
reaches the next keyframe on time."""

SINGLE_CRITIC = (RewardGroup("all", 1.0, (("goal", 25.0), ("style", 0.5), ("regularization", 0.1))),)
"""The baseline: one critic for the weighted sum. The weight of the sparse goal has to be tuned to its interval by hand."""


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of the actor and the critics."""

    width: int = 0
    """Width of a token inside the encoder; 0 keeps the token as it is, as in the paper."""
    layers: int = 2
    """Transformer layers."""
    heads: int = 1
    """Attention heads of a layer."""
    feedforward: int = 512
    """Width of the feed-forward part of a layer."""
    mlp: tuple[int, ...] = (512, 256)
    """Widths of the MLP after the encoder."""
    state_to_mlp: bool = False
    """Whether the MLP also sees the state, which a narrow encoder would squeeze into the pooled token."""
    next_goal_time_column: int | None = None
    """Column of a keyframe's token that holds the time until it is due. If set, the MLP also sees the keyframe that is due next.
    A dozen joint angles do not fit through the pooled token of a narrow encoder."""
    time_scales: tuple[float, ...] = ()
    """Time scales in s at which the MLP also sees how soon the next keyframe is due. Needs next_goal_time_column.
    Seconds alone differ too little from one control step to the next to push off or strike a pose on the right one."""
    servo_column: int | None = None
    """Column of a keyframe's token at which the joint errors begin, in the order of the actions. Needs next_goal_time_column.
    If set, the actor adds these errors to its actions in the last 0.1 s before the keyframe is due, with learned gains.
    A posture has to be struck on a single control step, and the gradient of the rewards says little about it."""
    servo_gain: float = 2.0
    """Initial gain of the posture servo, in actions per rad. The robot's 1 / action_scale moves a joint's target by the whole error."""
    critics: Literal["separate", "shared"] = "separate"
    """A separate network for each critic, or one shared network with an output for each."""
    initial_std: float = 1.0
    """Standard deviation of the actions at the start of training."""


@dataclass(frozen=True)
class ExplorationConfig:
    """Bounds on the standard deviation of the actions, which is learned."""

    std_range: tuple[float, float] = (0.05, 2.0)
    """Least and largest standard deviation while training explores."""
    final_std: float = 0.05
    """Both bounds move to this at the end of training, and of every stage of it."""
    correlation: float = 0.0
    """Correlation of the noise of one control step with the step before; its standard deviation is std / sqrt(1 - correlation^2).
    White noise (0) shakes the joints, moves the body little, and is easy for a discriminator to spot."""
    anneal_share: float = 0.1
    """Fraction of the run, at its end, over which the bounds are annealed."""
    learning_rate: float = 1e-3
    """Learning rate of the logarithm of the standard deviation; the network's own rate adapts and may become too small for it."""


@dataclass(frozen=True)
class PpoConfig:
    """Settings of the update."""

    groups: tuple[RewardGroup, ...] = MULTI_CRITIC
    """One critic for each group."""
    epochs: int = 5
    """Passes over the samples of an iteration."""
    critic_epochs: int = 5
    """Number of initial epochs that also update the critics."""
    minibatches: int = 4
    """Number of gradient steps in an epoch."""
    critic_warmup_steps: int = 0
    """Control steps at the start of a run in which only the critics learn.
    For runs that start from another policy, whose critics know neither the new rewards nor the new episodes."""
    learning_rate: float = 1e-4
    """Initial learning rate; it adapts to keep the divergence near its target."""
    learning_rate_range: tuple[float, float] = (1e-5, 2e-3)
    """Least and largest learning rate."""
    target_kl: float = 0.02
    """KL divergence that an update of the policy aims at."""
    entropy: float = 0.02
    """Weight of the entropy bonus."""
    gamma: float = 0.99
    """Discount factor per control step."""
    lam: float = 0.95
    """GAE's lambda, for groups without their own."""
    value_lam: float | None = None
    """Lambda of the returns that the critics learn, for all groups. None: that of each group's advantages.
    Policies learn with less noise from a low lambda if the critics are good, and critics become good with a high one."""
    clip: float = 0.2
    """Probability ratios are clipped at this distance from 1; the paper gives no value."""
    max_gradient_norm: float = 1.0
    """Larger gradients are scaled down to this norm."""
    symmetry: bool = False
    """Whether to also train on every sample mirrored left to right."""
    clone: float = 0.0
    """Weight of imitating demonstrated actions (squared distance over clone_scale, on samples that have a demonstration)."""
    clone_scale: float = 0.25
    """Distance between actions that counts as 1 in the imitation loss."""
    clone_steps: int = 1
    """Control steps over which the weight of imitation falls to zero."""
    imitation_steps: int = 0
    """Control steps at the start of a run in which the policy only imitates while the critics learn.
    It imitates demonstrated actions where there are any, and elsewhere the policy that it started from."""
    exploration: ExplorationConfig = field(default_factory=ExplorationConfig)


@dataclass(frozen=True)
class DiscriminatorConfig:
    """The style discriminator (paper, hyperparameters; sizes of the network and the penalty are ours)."""

    hidden: tuple[int, ...] = (1024, 512)
    """Widths of the hidden layers."""
    learning_rate: float = 3e-4
    """Learning rate of the discriminator."""
    updates: int = 20
    """Number of gradient steps per iteration."""
    batch: int = 768
    """Number of transitions from clips, and of as many from the policy, in a gradient step, over all processes."""
    gradient_penalty: float = 5.0
    """Weight of the squared gradient on transitions from clips."""
    weight_decay: float = 1e-4
    """Weight decay of the discriminator."""
    blur: float = 0.0
    """Noise added to the transitions of clips and policy in its updates, as a share of each feature's deviation over the clips.
    Exploration shakes the joints. Without blur, the discriminator learns to spot that alone; with it, it has to judge the gait."""
    replay: int = 200_000
    """Number of policy transitions to keep, over all processes."""


@dataclass(frozen=True)
class LearnerConfig:
    """Everything about learning that does not depend on the task."""

    environments: int = 4096
    """Number of robots, over all processes."""
    horizon: int = 24
    """Control steps of each robot per iteration."""
    steps: int = 500_000_000
    """Control steps of all robots together after which training ends."""
    average: float = 0.0
    """Share of the running mean of the weights that is kept at each iteration. The mean is what is evaluated and exported."""
    seed: int = 0
    """Seed of networks, episodes and noise."""
    checkpoint_minutes: float = 3.0
    """Minutes between checkpoints."""
    keep: int = 3
    """Number of checkpoints to keep."""
    evaluate_steps: int = 4_000_000
    """Control steps between evaluations on fixed episodes."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    ppo: PpoConfig = field(default_factory=PpoConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)


PAPER = LearnerConfig()
"""The paper's hyperparameter table."""

CPU = LearnerConfig(
    environments=256,  # small batches: many updates, with steps that suit their noise
    horizon=16,
    average=0.98,
    network=NetworkConfig(
        width=32,
        feedforward=128,
        mlp=(256, 128),
        state_to_mlp=True,
        next_goal_time_column=18,  # after the 18 errors of keyframes.goals.goal_observation
        critics="shared",
        initial_std=0.5,
    ),
    ppo=PpoConfig(
        groups=WITH_DEMONSTRATIONS,
        epochs=3,
        critic_epochs=3,
        minibatches=4,
        learning_rate=5e-4,
        target_kl=0.02,
        entropy=0.01,
        symmetry=True,
        exploration=ExplorationConfig(std_range=(0.2, 0.6), final_std=0.08),
    ),
    discriminator=DiscriminatorConfig(hidden=(256, 128), updates=4, batch=768, replay=100_000),
)
"""The paper's design, sized for two cores."""

LEARNER_PRESETS = {"cpu": CPU, "paper": PAPER}
