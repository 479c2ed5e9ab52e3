from pathlib import Path
from typing import Any, cast

import pytest

from keystride.policy.files import write_file


def test_a_file_is_there_with_its_content_alone(tmp_path: Path) -> None:
    write_file(b"new", tmp_path / "made" / "a.onnx")
    assert [path.read_bytes() for path in (tmp_path / "made").iterdir()] == [b"new"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.onnx"
    file.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_file(cast(Any, "not bytes"), file)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]
