"""One update on a fixed rollout, of which this process takes its share of the environments. Run as a program."""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from point_mass import PointMass

from keystride.learner import parallel
from keystride.learner.checkpoint import save_tree
from keystride.learner.config import NetworkConfig, PpoConfig, RewardGroup
from keystride.learner.networks import Actor, Critics, Observations
from keystride.learner.ppo import Ppo
from keystride.learner.rollout import Rollout, collect, tensors

HORIZON, COUNT = 20, 16


def share(rollout: Rollout, keep: slice) -> Rollout:
    """The same experience, of some of the environments only."""

    def rows(values: torch.Tensor) -> torch.Tensor:
        return values.unflatten(0, (HORIZON, COUNT))[:, keep].flatten(0, 1)

    mine = torch.zeros(COUNT, dtype=torch.bool)
    mine[keep] = True
    place = torch.cumsum(mine, 0) - 1
    time, owner = rollout.arrived_rows // COUNT, rollout.arrived_rows % COUNT
    kept = mine[owner]
    seen = rollout.observations
    return replace(
        rollout,
        observations=Observations(rows(seen.state), rows(seen.goals), rows(seen.visible)),
        mean=rows(rollout.mean),
        action=rows(rollout.action),
        log_prob=rows(rollout.log_prob),
        rewards={name: values[:, keep] for name, values in rollout.rewards.items()},
        terminated=rollout.terminated[:, keep],
        truncated=rollout.truncated[:, keep],
        final=rollout.final[keep],
        arrived=rollout.arrived[kept],
        arrived_rows=(time * int(mine.sum()) + place[owner])[kept],
    )


def main(out: Path) -> None:
    parallel.start("cpu")
    torch.manual_seed(0)
    network = NetworkConfig(width=8, feedforward=16, mlp=(16,), critics="shared", initial_std=0.5)
    groups = (RewardGroup("goal", 0.5, (("goal", 1.0),)), RewardGroup("ease", 0.25, (("ease", 1.0),)))
    actor, critics = Actor(network, 2, 3, 2), Critics(network, 2, 3, 2)
    environment = PointMass(COUNT)
    start = tensors(environment.observe(), torch.device("cpu"))
    rollout = collect(environment, actor, start, HORIZON, torch.Generator().manual_seed(1))
    each = COUNT // parallel.size()
    mine = share(rollout, slice(parallel.rank() * each, (parallel.rank() + 1) * each))
    # One whole-batch step an epoch: the halves then hold the same samples as the whole, in whatever order.
    ppo = Ppo(PpoConfig(groups=groups, epochs=3, minibatches=1, learning_rate=1e-3), actor, critics, torch.Generator())
    kl = ppo.update(mine)["kl"]  # over both
    actor.normalizer.update(*parallel.moments(mine.observations.state))
    if parallel.rank() == 0:
        # Functions, not weights: the keys' bias has no effect and no gradient, and Adam makes rounding noise of that.
        with torch.no_grad():
            learned = {
                "mean": actor.act(rollout.observations),
                "values": ppo._value(rollout.observations),
                "std": actor.std,
            }
        save_tree({"learned": learned, "kl": kl, "learning_rate": ppo.learning_rate}, out)
    parallel.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
