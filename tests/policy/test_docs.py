"""What docs/policies.md says is what the shipped code does."""

import re
from pathlib import Path

import numpy as np
import onnxruntime

from keystride.policy.bundle import POLICY_FILE, Metadata
from keystride.policy.runtime import Policy

PAGE = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()


def test_every_input_stands_in_the_table_with_its_shape_and_type(bundle: Path) -> None:
    told = re.findall(r"^\| `(\w+)` \| ([BK\d, ]+) \| (float32|bool);", PAGE, flags=re.MULTILINE)
    inputs = onnxruntime.InferenceSession(bundle / POLICY_FILE).get_inputs()
    kinds = {"tensor(float)": "float32", "tensor(bool)": "bool"}
    assert told == [(entry.name, ", ".join(map(str, entry.shape)), kinds[entry.type]) for entry in inputs]


def test_every_entry_of_the_metadata_is_explained() -> None:
    table = PAGE[PAGE.index("Metadata, all strings") : PAGE.index("A file is refused")]
    assert set(re.findall(r"`(\w+)`", table)) >= Metadata.__annotations__.keys()


def test_the_example_runs(bundle: Path, monkeypatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    code = PAGE[PAGE.index("```python") + len("```python") :].partition("```")[0]
    names: dict = {}
    exec(code.replace('"go2-position"', repr(str(bundle))), names)
    assert isinstance(names["policy"], Policy)
    assert names["targets"].shape == (1, 12)
    assert np.isfinite(names["state"].position).all()
    assert names["now"][0] > 50, "the script is over a second after its last keyframe"
