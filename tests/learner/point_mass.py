"""A point mass in the plane with timed goals: the smallest task that has the method's three difficulties.

Goals count at their time only (sparse), saving effort counts always (dense), and the second goal follows the first so closely
that one has to arrive at the first with the right velocity.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

DT = 0.1  # s
WIDTH = 0.5  # m, of the goal kernel
AFTER = 3  # steps from the last goal to the end
SLOTS = 2


@dataclass(frozen=True)
class Seen:
    state: Tensor  # (E, 2) velocity
    goals: Tensor  # (E, 2, 3) offset, seconds left
    visible: Tensor  # (E, 2)

    def __getitem__(self, rows: Tensor) -> "Seen":
        return Seen(self.state[rows], self.goals[rows], self.visible[rows])


@dataclass(frozen=True)
class Step:
    observation: Seen
    arrived: Seen
    rewards: dict[str, Tensor]
    terminated: Tensor
    truncated: Tensor
    transition: None = None
    demonstration: None = None


class PointMass:
    def __init__(
        self,
        count: int,
        *,
        first: tuple[int, int] = (8, 14),
        second: tuple[int, int] = (5, 8),
        see: str = "all",
        seed: int = 0,
    ) -> None:
        self.first, self.second, self.see = first, second, see
        self.generator = torch.Generator().manual_seed(seed)
        self.position, self.velocity = torch.zeros(count, 2), torch.zeros(count, 2)
        self.target, self.due = torch.zeros(count, SLOTS, 2), torch.zeros(count, SLOTS, dtype=torch.long)
        self.now = torch.zeros(count, dtype=torch.long)
        self.errors: list[tuple[float, float]] = []
        self.reached = 0  # control steps, of the curriculum
        self._restart(torch.arange(count))
        self.now = self._between((0, first[0]), count)  # staggered

    def observe(self) -> Seen:
        offset = self.target - self.position[:, None]
        left = (self.due - self.now[:, None]).float() * DT
        coming = left >= 0
        if self.see == "next":
            coming = coming & torch.tensor([True, False]) | (coming & ~coming[:, :1])
        return Seen(self.velocity.clone(), torch.cat([offset, left[..., None]], dim=-1), coming)

    def step(self, action: Any) -> Step:
        push = torch.as_tensor(action).clamp(-1.0, 1.0) * 4.0  # m/s^2
        self.velocity += push * DT
        self.position += self.velocity * DT
        self.now += 1
        distance = (self.target - self.position[:, None]).norm(dim=-1)  # (E, 2)
        due = self.due == self.now[:, None]
        goal = (torch.exp(-((distance / WIDTH) ** 2)) * due).sum(dim=-1)
        self.errors += [(float((distance * due).sum(dim=0)[i]), float(due.sum(dim=0)[i])) for i in range(SLOTS)]
        truncated = self.now >= self.due[:, -1] + AFTER
        rows = truncated.nonzero()[:, 0]
        arrived = self.observe()[rows]
        self._restart(rows)
        rewards = {"goal": goal, "ease": torch.exp(-(push**2).sum(dim=-1))}
        return Step(self.observe(), arrived, rewards, torch.zeros_like(truncated), truncated)

    def real_transitions(self, count: int) -> None:
        return None

    def metrics(self) -> dict[str, tuple[float, float]]:
        errors, self.errors = self.errors, []
        sums = [[sum(e[i] for e in errors[slot::SLOTS]) for i in (0, 1)] for slot in range(SLOTS)]
        return {f"error/{slot}": (sums[slot][0], sums[slot][1]) for slot in range(SLOTS)}

    def progress(self, steps: int, means: dict[str, float]) -> dict[str, float]:
        self.reached = steps
        return {}

    def curriculum(self) -> dict[str, Any]:
        return {"reached": self.reached}

    def set_curriculum(self, saved: dict[str, Any]) -> None:
        self.reached = saved["reached"]

    def snapshot(self) -> dict[str, Any]:
        names = ("position", "velocity", "target", "due", "now")
        return {"generator": self.generator.get_state(), **{name: getattr(self, name).clone() for name in names}}

    def restore(self, saved: dict[str, Any]) -> None:
        self.generator.set_state(torch.as_tensor(saved["generator"]))
        for name in ("position", "velocity", "target", "due", "now"):
            setattr(self, name, torch.as_tensor(saved[name]).clone())

    def _restart(self, rows: Tensor) -> None:
        count = len(rows)
        heading = torch.rand(count, 1, generator=self.generator) * 2 * torch.pi
        bend = (torch.rand(count, 1, generator=self.generator) - 0.5) * torch.pi
        angle = torch.cat([heading, heading + bend], dim=1)
        leap = torch.stack([angle.cos(), angle.sin()], dim=-1) * torch.tensor([0.8, 0.7])[:, None]
        self.position[rows], self.velocity[rows], self.now[rows] = 0.0, 0.0, 0
        self.target[rows] = leap.cumsum(dim=1)
        self.due[rows] = torch.stack([self._between(self.first, count), self._between(self.second, count)], 1).cumsum(1)

    def _between(self, limits: tuple[int, int], count: int) -> Tensor:
        return torch.randint(limits[0], limits[1] + 1, (count,), generator=self.generator)
