import numpy as np
import torch

from keystride.learner.config import NetworkConfig
from keystride.learner.networks import Actor, Critics, Observations, by_length, packed
from keystride.policy.graph import CriticGraph, PolicyGraph, Sight
from keystride.policy.interface import BITS, INPUTS
from keystride.robot.go2 import GO2
from keystride.task.observations import STATE_SIZE

SMALL = NetworkConfig(width=8, feedforward=8, mlp=(8,))


def inputs(robots: int = 2, keyframes: int = 3, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    sizes = {n: (robots, *(keyframes if s == "K" else s for s in shape)) for n, shape in INPUTS.items()}
    return [
        torch.rand(size, generator=generator) > 0.3 if n in BITS else torch.rand(size, generator=generator)
        for n, size in sizes.items()
    ]


def changed(given: list[torch.Tensor], name: str, by: float) -> list[torch.Tensor]:
    return [values + by if key == name else values for key, values in zip(INPUTS, given, strict=True)]


def test_components_that_were_never_learnt_are_ignored() -> None:
    sight = Sight(("position",))
    given = inputs()
    state, goals, visible = sight(*given)
    for name in ("goal_angles", "goal_posture"):
        after = sight(*changed(given, name, 0.5))
        assert all(map(torch.equal, after, (state, goals, visible)))
    assert not torch.equal(sight(*changed(given, "goal_position", 0.5))[1], goals)


def test_a_keyframe_without_any_learnt_component_is_not_seen() -> None:
    given = dict(zip(INPUTS, inputs(), strict=True))
    given["goal_visible"][:] = True
    given["goal_presence"][:] = torch.tensor([False, True, True, True, True])
    assert not Sight(("position",))(*given.values())[2].any()
    assert Sight(("position", "yaw"))(*given.values())[2].all()


def test_actions_are_scaled_about_the_stance_and_clipped_to_the_limits() -> None:
    actor = Actor(SMALL, STATE_SIZE, 24, 12)
    with torch.no_grad():
        actor.network.head.weight.zero_()
        actor.network.head.bias.copy_(
            torch.tensor([0.1, -0.2, 0.3, 99.0, 99.0, 99.0, -99.0, -99.0, -99.0, 0.0, 0.0, 0.0])
        )
        targets, _ = PolicyGraph(actor, GO2, ("position",))(*inputs(robots=1))
    expected = [0.05, 0.7, -1.35, *GO2.upper[3:6], *GO2.lower[6:9], 0.0, 0.8, -1.5]
    np.testing.assert_allclose(targets[0].numpy(), expected, atol=1e-6)


def test_critics_apart_give_the_values_of_training() -> None:
    actor, critics = Actor(SMALL, STATE_SIZE, 24, 12), Critics(SMALL, STATE_SIZE, 24, 3)
    critics.returns.update(torch.tensor(10.0), torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 9.0, 16.0]))
    graph, given = CriticGraph(critics, actor.normalizer, ("position", "yaw")), inputs(robots=5)
    seen = packed(Observations(*graph.sight(*given)))
    expected = by_length(lambda state, goals: critics(actor.normalizer(state), goals), seen)
    torch.testing.assert_close(graph(*given), critics.values(expected))
