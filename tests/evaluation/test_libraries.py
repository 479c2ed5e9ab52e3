from pathlib import Path

import pytest

from keystride.evaluation.libraries import load_libraries
from keystride.motion.authored.catalogue import CATALOGUE
from keystride.motion.authored.performance import as_clip
from keystride.motion.index import save_library
from keystride.robot.go2 import GO2


def test_a_folder_is_split_as_its_index_says(tmp_path: Path) -> None:
    clips = [as_clip(GO2, name, CATALOGUE[name](GO2)) for name in ("walk", "sit")]
    save_library(clips, tmp_path, GO2.name, held_out=["sit"])
    libraries = load_libraries(GO2, [tmp_path], [tmp_path], authored=False)
    assert libraries.dataset.names[0] == "walk"
    assert libraries.held_out is not None
    assert libraries.held_out.names[0] == "sit"
    assert libraries.unseen is not None
    assert {"walk", "sit"} <= set(libraries.unseen.names)  # of a foreign library both sides are unseen


def test_a_folder_without_a_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no motion library"):
        load_libraries(GO2, [tmp_path / "nothing"])
