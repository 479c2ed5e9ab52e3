"""The clips that an evaluation draws its keyframes from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keystride.motion.authored.catalogue import authored_clips
from keystride.motion.clip import Clip
from keystride.motion.index import INDEX, load_library_clips
from keystride.motion.library import Library
from keystride.robot.description import Robot


@dataclass(frozen=True)
class Libraries:
    """Seen in training; held out of the same source; from another source altogether."""

    dataset: Library
    held_out: Library | None = None
    unseen: Library | None = None
    captured: bool = False  # whether the dataset holds motion capture, as the paper's does


def load_libraries(
    robot: Robot, folders: Sequence[Path], unseen: Sequence[Path] = (), *, authored: bool = True
) -> Libraries:
    """Without any folder, the clips that ship. FileNotFoundError names a folder that holds no library."""
    for folder in (*folders, *unseen):
        if not (folder / INDEX).is_file():
            raise FileNotFoundError(2, "no motion library (`keystride motion import` makes one)", str(folder))
    train = [clip for folder in folders for clip in load_library_clips(folder, "train")]
    if authored or not train:
        train += authored_clips(robot)
    held_out = [clip for folder in folders for clip in load_library_clips(folder, "held_out")]
    foreign = [clip for folder in unseen for clip in load_library_clips(folder)]
    return Libraries(Library(robot, train), _maybe(robot, held_out), _maybe(robot, foreign), captured=bool(folders))


def _maybe(robot: Robot, clips: list[Clip]) -> Library | None:
    return Library(robot, clips) if clips else None
