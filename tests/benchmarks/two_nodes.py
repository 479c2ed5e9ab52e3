"""Started by torchrun: train a few iterations together, then write what this process ended with."""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import torch

from keystride.learner import parallel
from keystride.learner.config import CPU, DiscriminatorConfig
from keystride.motion.authored.catalogue import CATALOGUE
from keystride.motion.authored.performance import as_clip
from keystride.motion.library import Library
from keystride.robot.go2 import GO2
from keystride.training.build import make_trainer
from keystride.training.config import TrainingConfig

LEARNER = replace(
    CPU,
    environments=8,
    horizon=4,
    network=replace(CPU.network, width=16, feedforward=16, mlp=(16,)),
    discriminator=DiscriminatorConfig(hidden=(8,), updates=1, batch=16, replay=256),
)


def main(folder: Path) -> None:
    parallel.start("cpu")
    library = Library(GO2, [as_clip(GO2, name, CATALOGUE[name](GO2)) for name in ("walk_slow", "trot_slow")])
    trainer = make_trainer(TrainingConfig(learner=LEARNER), library)
    networks = {"actor": trainer.actor, "critics": trainer.critics, "discriminator": trainer.discriminator}
    begun = _weights(networks)
    for _ in range(3):
        trainer.iterate()
    found = {
        "processes": parallel.size(),
        "steps": trainer.steps,
        "begun": begun,
        "ended": _weights(networks),
        "state": float(trainer.seen.state.double().sum()),
    }
    (folder / f"{parallel.rank()}.json").write_text(json.dumps(found))
    parallel.stop()


def _weights(networks: dict[str, torch.nn.Module | None]) -> dict[str, str]:
    """SHA-256 of all weights of each network."""
    found = {}
    for name, network in networks.items():
        assert network is not None
        values = (value.numpy().tobytes() for value in network.state_dict().values())
        found[name] = hashlib.sha256(b"".join(values)).hexdigest()
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
