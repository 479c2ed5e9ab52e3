"""Train in several processes as in one: values that must agree are summed over all of them. One process needs no exchange."""

import ctypes
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def settle_process() -> None:
    """Use one thread and keep freed memory in the process: training is up to 13 times slower otherwise."""
    torch.set_num_threads(1)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD


def start(device: str) -> None:
    """Join the process group that torchrun or our own launcher describes in the environment."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.startswith("cuda") else "gloo")


def stop() -> None:
    """Leave the process group, all processes together: one that leaves early aborts communication still in progress elsewhere.

    A barrier may return here while it is still in progress elsewhere, so every process also reports in the store that it is done, and
    waits until all others have done so.
    """
    if dist.is_initialized():
        dist.barrier()
        store = dist.distributed_c10d._get_default_store()
        store.set(f"through/{rank()}", "")
        with suppress(RuntimeError):  # the process that keeps the store may already have ended: then all have reported
            store.wait([f"through/{other}" for other in range(size())], timedelta(seconds=60))
        dist.destroy_process_group()


def rank() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def size() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def total(values: Tensor) -> Tensor:
    """Return the sum over all processes."""
    if dist.is_initialized():
        values = values.clone()
        dist.all_reduce(values)
    return values


def average_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Average gradients over all processes in one flat exchange: twice as fast on CPUs as hooks for each parameter."""
    if not dist.is_initialized():
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    dist.all_reduce(flat)
    flat /= size()
    for gradient, piece in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(piece.view_as(gradient))


def broadcast_weights(modules: Iterable[torch.nn.Module]) -> None:
    """Copy the weights of the first process to all others."""
    if dist.is_initialized():
        for module in modules:
            for tensor in (*module.parameters(), *module.buffers()):
                dist.broadcast(tensor.data, src=0)


def moments(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return count, mean and population variance of each column of (N, F) over all processes."""
    values = values.double()
    count = torch.full((1,), float(len(values)), dtype=torch.float64, device=values.device)
    sums = total(torch.cat([count, values.sum(dim=0), values.square().sum(dim=0)]))
    columns = values.shape[1]
    mean = sums[1 : 1 + columns] / sums[0]
    variance = (sums[1 + columns :] / sums[0] - mean.square()).clamp(min=0.0)
    return sums[0], mean.float(), variance.float()


def masked_moments(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return count, mean and population variance of each column of (N, F) over all processes, where mask (N, F) is true."""
    values = torch.where(mask, values, 0.0).double()
    sums = total(torch.stack([mask.double().sum(dim=0), values.sum(dim=0), values.square().sum(dim=0)]))
    count = sums[0].clamp(min=1.0)
    mean = sums[1] / count
    return sums[0], mean.float(), (sums[2] / count - mean.square()).clamp(min=0.0).float()


def all_gather_json(message: Any) -> list[Any]:
    """Return the messages of all processes in their order. A message is anything that JSON can represent."""
    if not dist.is_initialized():
        return [message]
    own = torch.tensor(list(json.dumps(message).encode()), dtype=torch.uint8)
    sizes = [torch.zeros(1, dtype=torch.long) for _ in range(size())]
    dist.all_gather(sizes, torch.tensor([len(own)]))
    longest = int(max(sizes))
    padded = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
    dist.all_gather(padded, torch.nn.functional.pad(own, (0, longest - len(own))))
    return [json.loads(bytes(p[: int(n)].tolist())) for p, n in zip(padded, sizes, strict=True)]


def wait() -> None:
    """Wait until all processes have reached this point."""
    if dist.is_initialized():
        dist.barrier()
