"""A worker process that cannot go on says why, and its parent says it once. Whole runs are tested with `train`."""

import sys

import pytest

from keystride.errors import UserError
from keystride.training import TrainingConfig
from keystride.training.config import write_config
from keystride.training.launch import launch


def test_a_damaged_checkpoint_ends_the_worker_with_one_line(tiny: TrainingConfig) -> None:
    place = tiny.folder / "checkpoints" / "00000001"
    place.mkdir(parents=True)
    (place / "learner.json").write_text("{")
    write_config(tiny, tiny.folder)
    with pytest.raises(UserError, match=r"^[^\n]*learner\.json: truncated or not JSON[^\n]*$"):
        launch([sys.executable, "-m", "keystride.training.loop", str(tiny.folder)], 1)
