"""In a single process nothing changes; that two processes agree is tested with the trainer."""

import pytest
import torch

from keystride.learner import parallel


def test_alone_every_exchange_returns_what_it_was_given() -> None:
    values = torch.randn(3)
    assert parallel.total(values) is values
    assert parallel.all_gather_json({"a": [1, None]}) == [{"a": [1, None]}]
    assert (parallel.rank(), parallel.size()) == (0, 1)


def test_moments_are_those_of_the_columns() -> None:
    values = torch.tensor([[1.0, 10.0], [3.0, 10.0], [5.0, 40.0]])
    count, mean, variance = parallel.moments(values)
    assert count == 3
    assert mean.tolist() == [3.0, 20.0]
    assert variance.tolist() == pytest.approx([8.0 / 3.0, 200.0])


def test_masked_moments_leave_out_what_is_masked() -> None:
    """Whatever stands there, and with zeros for a column that has no values."""
    nan = float("nan")
    values = torch.tensor([[1.0, nan, nan], [3.0, 5.0, nan], [nan, 7.0, nan]])
    count, mean, variance = parallel.masked_moments(values, ~values.isnan())
    assert count.tolist() == [2.0, 2.0, 0.0]
    assert mean.tolist() == [2.0, 6.0, 0.0]
    assert variance.tolist() == [1.0, 1.0, 0.0]


def test_a_settled_process_has_one_thread() -> None:
    parallel.settle_process()
    assert torch.get_num_threads() == 1
