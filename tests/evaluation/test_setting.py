from pathlib import Path

import pytest

from keystride.evaluation.setting import load_libraries, restricted_goals
from keystride.keyframes.goals import empty_goals
from keystride.motion.authored.catalogue import CATALOGUE
from keystride.motion.authored.performance import as_clip
from keystride.motion.library import save_library
from keystride.robot.go2 import GO2


def test_goals_are_restricted_to_what_a_policy_was_trained_on() -> None:
    goals = empty_goals(1, 1)
    goals.position[:], goals.angles[:], goals.posture[:] = 1.0, 0.5, 0.7
    goals.presence[:], goals.height[:] = True, True
    kept = restricted_goals(goals, ("position", "yaw"))
    assert kept.presence[0, 0].tolist() == [True, False, False, True, False]
    assert kept.angles[0, 0].tolist() == [0.0, 0.0, 0.5]
    assert not kept.posture.any()
    assert kept.height.all()


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
