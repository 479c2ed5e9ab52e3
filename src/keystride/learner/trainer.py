"""One training iteration (collect, score style, update), and checkpoints of everything it depends on."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from keystride.files import replace_folder
from keystride.learner import parallel
from keystride.learner.checkpoint import (
    Tree,
    checkpoint_errors,
    checkpoints,
    load_module,
    load_optimizer,
    load_tree,
    optimizer_tree,
    prune,
    save_tree,
    widen,
)
from keystride.learner.config import LearnerConfig
from keystride.learner.discriminator import Discriminator, Replay, discriminator_loss, style_reward
from keystride.learner.networks import Actor, Critics, Observations
from keystride.learner.ppo import Ppo, Symmetry
from keystride.learner.rollout import Environment, Rollout, collect, tensors

STYLE_SAMPLE = 50_000  # real transitions that the discriminator's normalization is computed from
MOST_SKIPS_IN_A_ROW = 20


class TrainingStopped(RuntimeError):
    """Training cannot continue; the last checkpoint is intact."""


@dataclass(frozen=True)
class Specialist:
    """A policy that is imitated in some situations, while a run only imitates."""

    actor: Actor
    applies: Callable[[Observations], Tensor]  # (N,) bool


class Trainer:
    """Trains a policy on an environment. `training.build.make_trainer` makes one for a configuration.

    Making one limits the process to one thread and keeps freed memory in it, without which training is many times slower.
    """

    def __init__(
        self,
        config: LearnerConfig,
        environment: Environment,
        actions: int,
        *,
        symmetry: Symmetry | None = None,
        specialist: Specialist | None = None,
        device: str = "cpu",
    ) -> None:
        parallel.settle_process()
        self.config, self.environment, self.device = config, environment, torch.device(device)
        torch.manual_seed(config.seed)
        self.generator = torch.Generator().manual_seed(config.seed + 1000 * (parallel.rank() + 1))
        self.seen = tensors(environment.observe(), self.device)
        sizes = self.seen.state.shape[-1], self.seen.goals.shape[-1]
        self.actor = Actor(config.network, *sizes, actions).to(self.device)
        self.critics = Critics(config.network, *sizes, len(config.ppo.groups)).to(self.device)
        self.discriminator = self._new_discriminator()
        parallel.broadcast_weights([self.actor, self.critics, *([self.discriminator] if self.discriminator else [])])
        self._average = AveragedModel(self.actor, multi_avg_fn=get_ema_multi_avg_fn(config.average), use_buffers=True)
        self.ppo = Ppo(config.ppo, self.actor, self.critics, self.generator, symmetry)
        self.noise = torch.zeros(len(self.seen), actions, device=self.device)  # of the last actions
        self.teacher: Actor | None = None  # the policy that the run began with, while it is imitated
        self.specialist = specialist
        self.steps = 0
        self.iteration = 0
        self.seconds: dict[str, float] = {}
        self._skips_in_a_row = 0
        self._schedule()

    @property
    def averaged(self) -> Actor:
        """The running mean of the policies, which acts more steadily than the latest one. It is what is evaluated and exported."""
        actor = self._average.module
        assert isinstance(actor, Actor)
        return actor

    def iterate(self) -> dict[str, float]:
        """Run one iteration and return its metrics, over all processes."""
        with self._timed("rollout"):
            rollout = collect(
                self.environment,
                self.actor,
                self.seen,
                self.config.horizon,
                self.generator,
                noise=self.noise,
                correlation=self.config.ppo.exploration.correlation,
            )
        self.seen, self.noise = rollout.final, rollout.noise
        rollout = self._with_teacher(rollout)
        with self._timed("discriminator"):
            style = self._style(rollout)
        with self._timed("ppo"):
            report = self.ppo.update(rollout)
        self._guard()
        self.actor.normalizer.update(*parallel.moments(rollout.observations.state))
        self._average.update_parameters(self.actor)
        self.steps += rollout.action.shape[0] * parallel.size()
        self.iteration += 1
        return self._advance({**report, **style}, rollout)

    def _advance(self, report: dict[str, float], rollout: Rollout) -> dict[str, float]:
        """Return metrics over all processes, and advance schedules and curriculum by them."""
        sums = {f"reward/{name}": (float(r.nansum()), float((~r.isnan()).sum())) for name, r in rollout.rewards.items()}
        means = mean_over_processes({**sums, **self.environment.metrics(), **{k: (v, 1.0) for k, v in report.items()}})
        self._schedule()
        return {**means, **self.environment.progress(self.steps, means)}

    def _with_teacher(self, rollout: Rollout) -> Rollout:
        """Return the rollout; while the run imitates, with the specialist's actions, or else those of the policy it began with, where
        nothing is demonstrated."""
        if not self.ppo.only_imitates or rollout.demonstration is None:
            self.teacher = None
            return rollout
        if self.teacher is None:
            self.teacher = deepcopy(self.actor)
        with torch.no_grad():
            taught = self.teacher.act(rollout.observations)
            if self.specialist is not None:
                rows = self.specialist.applies(rollout.observations).nonzero()[:, 0]
                taught[rows] = self.specialist.actor.act(rollout.observations[rows])
        shown = rollout.demonstration
        return replace(rollout, demonstration=torch.where(shown.isnan(), taught, shown))

    def _style(self, rollout: Rollout) -> dict[str, float]:
        """Add the style reward to the rollout, then update the discriminator."""
        if self.discriminator is None or rollout.transitions is None:
            return {}
        with torch.no_grad():
            reward = style_reward(self.discriminator(rollout.transitions))
        rollout.rewards["style"] = reward.unflatten(0, (rollout.horizon, -1))
        self.replay.add(rollout.transitions.cpu())
        settings = self.config.discriminator
        share = max(settings.batch // parallel.size(), 1)
        return _mean([self._update_discriminator(share) for _ in range(settings.updates)])

    def _update_discriminator(self, batch: int) -> dict[str, float]:
        assert self.discriminator is not None
        real = torch.as_tensor(self.environment.real_transitions(batch), dtype=torch.float32, device=self.device)
        policy = self.replay.draw(batch, self.generator).to(self.device)
        settings = self.config.discriminator
        loss, report = discriminator_loss(
            self.discriminator, real, policy, settings.gradient_penalty, settings.blur, self.generator
        )
        self.discriminator_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        parallel.average_gradients(self.discriminator.parameters())
        norm = torch.nn.utils.clip_grad_norm_(self.discriminator.parameters(), 10.0)
        if torch.isfinite(norm):
            self.discriminator_optimizer.step()
        else:
            self.ppo.skipped += 1
        return report

    def _new_discriminator(self) -> Discriminator | None:
        if not any(name == "style" for group in self.config.ppo.groups for name, _ in group.rewards):
            return None
        settings = self.config.discriminator
        sample = torch.as_tensor(self.environment.real_transitions(STYLE_SAMPLE), dtype=torch.float32)
        mean, std = sample.mean(dim=0), sample.std(dim=0).clamp(min=1e-3)
        discriminator = Discriminator(settings, mean, std).to(self.device)
        self.discriminator_optimizer = torch.optim.Adam(
            discriminator.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.replay = Replay(settings.replay // parallel.size(), sample.shape[1])
        return discriminator

    def _schedule(self) -> None:
        """Set what depends on the number of control steps done: bounds of the noise, weight of imitation."""
        exploration, ppo = self.config.ppo.exploration, self.config.ppo
        left = (1.0 - self.steps / self.config.steps) / max(exploration.anneal_share, 1e-9)
        share = min(max(1.0 - left, 0.0), 1.0)  # 0 with the initial bounds, 1 with the final deviation
        low, high = (std ** (1.0 - share) * exploration.final_std**share for std in exploration.std_range)
        self.ppo.std_bounds = low, high
        self.actor.clamp_std(low, high)
        self.ppo.clone = ppo.clone * max(1.0 - self.steps / ppo.clone_steps, 0.0)
        self.ppo.actor_learns = self.steps >= ppo.critic_warmup_steps
        self.ppo.only_imitates = self.steps < ppo.imitation_steps

    def _guard(self) -> None:
        """Stop training after many skipped updates in a row; a single one now and then does no harm."""
        skipped, self.ppo.skipped = self.ppo.skipped, 0
        self._skips_in_a_row = self._skips_in_a_row + skipped if skipped else 0
        if skipped:
            print(
                f"iteration {self.iteration}: {skipped} updates skipped, gradient or divergence not finite", flush=True
            )
        if self._skips_in_a_row >= MOST_SKIPS_IN_A_ROW:
            raise TrainingStopped(
                f"{self._skips_in_a_row} updates in a row were not finite; the last checkpoint is intact"
            )

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start

    # Checkpoints: everything that is needed to continue exactly as if nothing had happened.

    def save(self, folder: Path, extra: Tree | None = None) -> Path:
        """Write a checkpoint of all processes, named after the iteration; `extra` is saved along with the learner's own state."""
        part, place = folder / f"{self.iteration:08d}.part", folder / f"{self.iteration:08d}"
        part.mkdir(parents=True, exist_ok=True)
        if parallel.rank() == 0:
            save_tree({**self.shared_state(), **(extra or {})}, part / "learner")
        save_tree(self._own_state(), part / f"process{parallel.rank()}")
        parallel.wait()
        if parallel.rank() == 0:
            replace_folder(part, place)
            prune(folder, self.config.keep)
        parallel.wait()
        return place

    @checkpoint_errors
    def load(self, place: Path, *, episodes: bool = True) -> None:
        """Continue from a checkpoint; without `episodes`, as when the task has changed, all robots start new ones."""
        shared = load_tree(place / "learner")
        self.load_weights(shared)
        load_optimizer(self.ppo.actor_optimizer, shared["actor_optimizer"])
        load_optimizer(self.ppo.critic_optimizer, shared["critic_optimizer"])
        self.ppo.set_learning_rate(shared["learning_rate"])
        self.steps, self.iteration = shared["steps"], shared["iteration"]
        self.environment.set_curriculum(shared["curriculum"])
        if "teacher" in shared:
            self.teacher = deepcopy(self.actor)
            load_module(self.teacher, shared["teacher"])
        self._schedule()
        if self.discriminator is not None:
            load_optimizer(self.discriminator_optimizer, shared["discriminator_optimizer"])
        if shared["layout"] == self._layout():
            self._load_own(load_tree(place / f"process{parallel.rank()}"), episodes)
        elif parallel.rank() == 0:
            print("the checkpoint has another number of robots or processes: all episodes start again", flush=True)

    def _load_own(self, own: dict[str, Any], episodes: bool) -> None:
        """Load the part of a checkpoint that belongs to this process."""
        if episodes:
            self.environment.restore(own["environment"])
        self.generator.set_state(torch.as_tensor(own["generator"]))
        if "noise" in own:
            self.noise = torch.as_tensor(own["noise"]).to(self.device)
        self.seen = tensors(self.environment.observe(), self.device)
        if self.discriminator is not None:
            self.replay.rows = torch.as_tensor(own["replay"]["rows"])
            self.replay.filled, self.replay.cursor = own["replay"]["filled"], own["replay"]["cursor"]

    def _layout(self) -> dict[str, int]:
        return {"environments": self.config.environments, "processes": parallel.size()}

    def load_weights(self, shared: dict[str, Any]) -> None:
        """Load the networks of a checkpoint."""
        load_module(self.actor, shared["actor"])
        load_module(self.averaged, shared.get("averaged", shared["actor"]))
        self._average.n_averaged.fill_(1)
        load_module(self.critics, shared["critics"])
        if self.discriminator is not None and "discriminator" in shared:
            load_module(self.discriminator, shared["discriminator"])

    def start_from(self, weights: dict[str, Any]) -> None:
        """Begin with the networks of another run, but with this run's exploration. They may be narrower than this run's, their actor
        may lack the servo, and their critics may have fewer reward groups."""
        servo = {name: gains for name, gains in self.actor.state_dict().items() if name.startswith("servo.")}
        grown = {
            name: widen({**(servo if name != "critics" else {}), **weights[name]}, network.state_dict())
            for name, network in (("actor", self.actor), ("averaged", self.averaged), ("critics", self.critics))
            if name in weights
        }
        grown["actor"] = {**grown["actor"], "log_std": self.actor.log_std.detach()}
        self.load_weights({**weights, **grown})

    def shared_state(self) -> dict[str, Any]:
        """Return the part of a checkpoint that is the same in all processes."""
        style = {}
        if self.discriminator is not None:
            style = {
                "discriminator": self.discriminator.state_dict(),
                "discriminator_optimizer": optimizer_tree(self.discriminator_optimizer),
            }
        return {
            "actor": self.actor.state_dict(),
            "averaged": self.averaged.state_dict(),
            "critics": self.critics.state_dict(),
            "actor_optimizer": optimizer_tree(self.ppo.actor_optimizer),
            "critic_optimizer": optimizer_tree(self.ppo.critic_optimizer),
            "learning_rate": self.ppo.learning_rate,
            "steps": self.steps,
            "iteration": self.iteration,
            "curriculum": self.environment.curriculum(),
            "layout": self._layout(),
            **({"teacher": self.teacher.state_dict()} if self.teacher else {}),
            **style,
        }

    def averaged_state(self) -> dict[str, Any]:
        """Return the shared state with the averaged actor in place of the latest one."""
        return {**self.shared_state(), "actor": self.averaged.state_dict()}

    def _own_state(self) -> dict[str, Any]:
        replay = {}
        if self.discriminator is not None:
            replay = {"rows": self.replay.rows, "filled": self.replay.filled, "cursor": self.replay.cursor}
        return {
            "environment": self.environment.snapshot(),
            "generator": self.generator.get_state(),
            "noise": self.noise,
            "replay": replay,
        }


def latest(folder: Path) -> Path | None:
    """Return the newest checkpoint in a folder."""
    found = checkpoints(folder)
    return found[-1] if found else None


def mean_over_processes(sums: dict[str, tuple[float, float]]) -> dict[str, float]:
    """Return the mean of each metric over all processes; a process may lack some of them."""
    joint: dict[str, tuple[float, float]] = {}
    for part in parallel.all_gather_json(sums):
        for name, (value, count) in part.items():
            total, number = joint.get(name, (0.0, 0.0))
            joint[name] = total + value, number + count
    return {name: value / count for name, (value, count) in sorted(joint.items()) if count}


def _mean(reports: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(report[name] for report in reports) / len(reports) for name in reports[0]} if reports else {}
