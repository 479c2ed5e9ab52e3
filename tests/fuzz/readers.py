"""What keystride does with a file, by reader: the call that its commands make, and a look at what came out."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from seeds import script, swaying, tiny_trainer

from keystride.deploy.log.flight import read_log
from keystride.deploy.log.replay import STATE_COLOURS, flight_summary, simulate
from keystride.deploy.pose.source import Mounting, UdpPoses
from keystride.errors import FileError, UserError
from keystride.evaluation.rendering.replay import robot_shapes
from keystride.keyframes.feasibility import script_warnings
from keystride.keyframes.files import load_script, parse_script
from keystride.keyframes.resolve import resolve
from keystride.motion.clip import CLIP_ARRAYS, Clip, load_clip
from keystride.motion.importers.animal import load_selection, load_skeleton
from keystride.motion.importers.importing import INTERNAL, ImportOptions, RefusedFile, import_files
from keystride.motion.library import Library, load_library_clips
from keystride.physics.simulator import training_model
from keystride.policy.curve import read_curve
from keystride.policy.runtime import ExportedCritics, Policy
from keystride.robot.catalogue import load_robot
from keystride.robot.go2 import GO2
from keystride.studies.measures import read_result
from keystride.studio.document.draft import from_script
from keystride.studio.document.pose_library import PoseLibrary
from keystride.studio.page.page_channel import read_events
from keystride.studio.unsaved_work import DraftsFolder
from keystride.training.checks import check
from keystride.training.config import TrainingConfig, read_config, resolved_stages


def import_motion(kind: str) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        (result,) = import_files(kind, [path], GO2, ImportOptions())
        if isinstance(result, RefusedFile):
            if result.reason.startswith(INTERNAL):
                raise RuntimeError(result.reason)
            raise FileError(f"{result.file}: {result.reason}")
        assert result
        for imported in result:
            check_clip(imported.clip)

    return read


def check_clip(clip: Clip) -> None:
    for name in CLIP_ARRAYS:
        values = getattr(clip, name)
        assert len(values) == len(clip), name
        assert np.isfinite(values).all(), name
    ", ".join(clip.tags)


def read_clip(path: Path) -> None:
    check_clip(load_clip(path))


def read_library(path: Path) -> None:
    clips = load_library_clips(path.parent)
    if clips:
        library = Library(GO2, clips)
        assert np.isfinite(library.frames.position).all()


def read_script(path: Path) -> None:
    script = load_script(path, GO2)
    script_warnings(script, GO2)
    resolve(script, GO2)


def read_upload(path: Path) -> None:
    from keystride.keyframes.document import ScriptError

    try:
        from_script(parse_script(path.read_bytes(), robot=GO2), GO2)
    except ScriptError as error:
        raise ScriptError(error.problems, source=path.name) from None


def read_bundle(path: Path) -> None:
    from keystride.policy.export import load_trained, metadata_of

    metadata_of(load_trained(path.parent, GO2), GO2, values=False)  # as export does


def pack_bundle(path: Path) -> None:
    from keystride.policy.packing import pack

    with tempfile.TemporaryDirectory() as folder:
        pack(path.parent, Path(folder) / "packed", robot=GO2)


@cache
def trainer() -> Any:
    return tiny_trainer()


def read_checkpoint(path: Path) -> None:
    from keystride.policy.loading import load_weights

    trainer().load(path.parent)
    load_weights(path.parent)


def read_run(path: Path) -> None:
    """As a run is looked at before it goes on."""
    from keystride.training.run_folder import RunFolder
    from keystride.training.start import config_of_run, steps_saved

    class Resumed(RunFolder):
        def _evaluate(self) -> dict[str, float]:
            return {}

        def _write(self, means: dict[str, float]) -> None:
            pass

    run = next(folder for folder in path.parents if folder.name == "run")
    config = config_of_run(run)
    steps_saved(run)
    folder = Resumed(replace(config, wandb=None))  # it need not be installed
    folder.view = None
    folder.begin(trainer(), resolved_stages(config)[0], Library(GO2, [swaying()]))
    assert isinstance(folder.best, float)


def read_recipe(path: Path) -> None:
    config = read_config(path)
    try:
        check(config)
    except UserError as error:  # the command line may have changed the file's settings: it is not named here
        raise FileError(f"{path}: {error}") from error


def read_robot(path: Path) -> None:
    """The description, and the model that it names; as training simulates it, and as pages draw it."""
    of_model = (folder / "robot.yaml" for folder in path.parents if (folder / "robot.yaml").exists())
    robot = load_robot(next(of_model, path))
    assert np.isfinite(robot.stance).all()
    model = training_model(robot)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    robot_shapes(robot)


def read_poses(path: Path) -> None:
    library = PoseLibrary(path.parent, GO2)
    for pose in library.own().values():
        assert np.isfinite([*pose.joints, pose.height, pose.roll, pose.pitch]).all()
    assert library.poses()


def read_flight(path: Path) -> None:
    flight = read_log(path.parent)
    flight_summary(flight, simulate(flight, GO2), GO2)
    for begin in np.unique(flight.rows["state"]):
        assert STATE_COLOURS[begin]


def read_draft(path: Path) -> None:
    folder = DraftsFolder(path.parent.parent, GO2)
    folder.entries()
    document = folder.read("tab")
    if document is None:  # the studio starts without it
        raise FileError(f"{path.name}: no draft")
    from_script(document.draft.script() or script(), GO2)


@cache
def listener() -> UdpPoses:
    return UdpPoses(Mounting(), port=0)


def read_pose(path: Path) -> None:
    """A datagram of a motion capture, and the same again."""
    for _ in range(2):
        listener()._parse(path.read_bytes()[:4096])
    newest = listener().poses.value
    assert newest is None or np.isfinite([*newest.position, *newest.orientation]).all()


def read_page(path: Path) -> None:
    read_events(path.read_text(encoding="utf-8", errors="replace"))


def read_study(path: Path) -> None:
    """The kept result of a run, as a study goes on with it."""
    result = read_result(TrainingConfig(name="run", runs=path.parents[1] / "runs"), episodes=2)
    if result is not None:
        for errors in result.errors.values():
            errors.as_dict()


def read_metrics(path: Path) -> None:
    read_curve(path)


READERS: dict[str, Callable[[Path], Any]] = {
    **{kind: import_motion(kind) for kind in ("mann", "lifelike", "amp", "csv", "npz")},
    "clip": read_clip,
    "library": read_library,
    "skeleton": load_skeleton,
    "selection": load_selection,
    "script": read_script,
    "upload": read_upload,
    "policy": partial(Policy.load, robot=GO2),
    "critic": partial(ExportedCritics.load, robot=GO2),
    "bundle": read_bundle,
    "pack": pack_bundle,
    "curve": read_metrics,
    "recipe": read_recipe,
    "robot": read_robot,
    "flight": read_flight,
    "draft": read_draft,
    "poses": read_poses,
    "study": read_study,
    "page_events": read_page,
    "pose": read_pose,
    "run": read_run,
    "checkpoint": read_checkpoint,
}
