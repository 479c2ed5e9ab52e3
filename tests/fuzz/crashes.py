"""Kill what writes files at random moments, and see that nothing is lost and nothing is half-written.

    python tests/fuzz/crashes.py --kills 200           scripts, the studio, libraries, import, export, checkpoints and training

A killed process is a fork that runs the shipped functions. It ends by SIGKILL before one of its operations on files, or by
a timer of its own processor time anywhere in between; so a busy machine changes nothing. Then the files are read as
keystride reads them.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

from seeds import csv_text, library, script, swaying, tiny_trainer

from keystride import files
from keystride.keyframes.files import load_script, save_script
from keystride.motion.library import load_library_clips, save_library
from keystride.robot.go2 import GO2
from keystride.studio.document.draft import from_script
from keystride.studio.document.history import Document, SavedFile
from keystride.studio.script_folder import ScriptFolder
from keystride.studio.unsaved_work import DraftsFolder, dump
from keystride.training.launch import GRACE_SECONDS

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CALLS = {"write", "close", "flush", "fsync", "__exit__"}  # of open files; Python tells of them before and after
EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree", "os.listdir", "os.scandir"}
WHOLE = 0  # exit code of a fork that was not killed


@dataclass(frozen=True)
class Work:
    """Something that replaces files: how they are before, what replaces them, and what must hold at every moment."""

    prepare: Callable[[Path], None]
    change: Callable[[Path], None]
    check: Callable[[Path], None]  # an exception is a loss
    operations: int = 400  # the most that are looked at: training goes on and is never let to its end


# Scripts, as the studio and the command line save them.


def save_new_script(folder: Path) -> None:
    keyframes = tuple(one.model_copy(update={"label": "new"}) for one in script().keyframes)
    save_script(script().model_copy(update={"keyframes": keyframes}), folder / "script.yaml")


def check_script(folder: Path) -> None:
    labels = {keyframe.label for keyframe in load_script(folder / "script.yaml").keyframes}
    assert labels in ({"first", None}, {"new"}), labels
    check_leftovers(folder / "script.yaml")


# A script and the unsaved work of a tab, as the studio saves them.


def prepare_studio(folder: Path) -> None:
    save_script(script(), folder / "script.yaml")
    DraftsFolder(folder, GO2).write("tab", dump(Document(from_script(script(), GO2), "script.yaml")))


def save_in_studio(folder: Path) -> None:
    scripts = ScriptFolder(folder, GO2)
    loaded = scripts.load("script.yaml")
    before = from_script(loaded.script, GO2)
    keyframes = tuple(one.model_copy(update={"label": "new"}) for one in loaded.script.keyframes)
    after = from_script(loaded.script.model_copy(update={"keyframes": keyframes}), GO2)
    DraftsFolder(folder, GO2).write("tab", dump(Document(after, "script.yaml")))
    scripts.save("script.yaml", after, SavedFile(before, loaded.digest))


def check_studio(folder: Path) -> None:
    (stored,) = DraftsFolder(folder, GO2).entries()
    for found in (DraftsFolder(folder, GO2).read(stored.tab), load_script(folder / "script.yaml")):
        assert found is not None
        kept = found.draft.script() if isinstance(found, Document) else found
        assert kept is not None
        assert {keyframe.label for keyframe in kept.keyframes} in ({"first", None}, {"new"})
    assert ScriptFolder(folder, GO2).names() == ("script.yaml",)


def keystride(*arguments: object) -> None:
    """Run a command with its output thrown away."""
    from keystride.commands.main import main

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    assert main([str(argument) for argument in arguments]) == 0


# Libraries: written alone, where folders cannot be exchanged, and by the command that imports motions.


def save_new_library(folder: Path) -> None:
    clips = [replace(swaying(), name=f"new{i}") for i in range(4)]
    save_library(clips, folder / "library", GO2.name, held_out=["new0"])


def check_library(folder: Path) -> None:
    names = [clip.name for clip in load_library_clips(folder / "library")]
    assert names in (["walk", "other"], ["new0", "new1", "new2", "new3"]), names
    check_leftovers(folder / "library")


def rename_new_library(folder: Path) -> None:
    """Replace a library by two renames, as on a file system that cannot exchange folders."""
    files._exchange = lambda one, other: False
    save_new_library(folder)


def prepare_import(folder: Path) -> None:
    library(swaying(), folder / "libraries" / "library")
    (folder / "motion").mkdir()
    for i in range(4):
        (folder / "motion" / f"new{i}.csv").write_text(csv_text(swaying()))


def import_library(folder: Path) -> None:
    keystride("motion", "import", folder / "motion", "--from", "csv", "--out", folder / "libraries" / "library")


# Policies and bundles, as `keystride export` writes them.


def prepare_policy(folder: Path) -> None:
    from keystride.policy.bundle import SHIPPED

    shutil.copy(SHIPPED / "go2-pose" / "policy.onnx", folder)


def export_policy(folder: Path) -> None:
    keystride("export", "go2-position", "--out", folder / "policy.onnx")


def check_policy(folder: Path) -> None:
    from keystride.policy.runtime import Policy

    Policy.load(folder / "policy.onnx", robot=GO2)
    check_leftovers(folder / "policy.onnx")


def prepare_bundle(folder: Path) -> None:
    from keystride.policy.bundle import SHIPPED

    shutil.copytree(SHIPPED / "go2-pose", folder / "bundle")


def pack_bundle(folder: Path) -> None:
    from keystride.policy.bundle import SHIPPED
    from keystride.policy.packing import pack

    pack(SHIPPED / "go2-position", folder / "bundle", robot=GO2)


def check_bundle(folder: Path) -> None:
    from keystride.policy.packing import check_bundle as check
    from keystride.policy.provenance import read_settings

    check(folder / "bundle", GO2)
    read_settings(folder / "bundle")
    check_leftovers(folder / "bundle")


# Checkpoints and the best policy of a run.

_trainers: list[Any] = []


def trainer() -> Any:
    if not _trainers:
        _trainers.append(tiny_trainer())
    return _trainers[0]


def save_run(folder: Path, first: int, last: int) -> None:
    """Write checkpoints of some iterations, and each time a better policy."""
    from keystride.learner.checkpoint import save_tree

    for iteration in range(first, last):
        trainer().iteration = trainer().steps = iteration
        trainer().save(folder / "checkpoints")
        with files.part_folder(folder / "best") as part:
            save_tree(trainer().averaged_state(), part / "learner")
            (part / "figures.json").write_text(json.dumps({"score": 1.0 / iteration, "steps": iteration}))


def check_run(folder: Path) -> None:
    """The newest checkpoint can be resumed, and the best policy is one whose score is known."""
    from keystride.learner.checkpoint import checkpoints, load_tree

    newest = checkpoints(folder / "checkpoints")[-1]
    trainer().load(newest)
    assert trainer().steps == int(newest.name) >= 3
    best = load_tree(folder / "best" / "learner")
    figures = json.loads((folder / "best" / "figures.json").read_text())
    assert figures == {"score": 1.0 / best["steps"], "steps": best["steps"]}
    assert int(newest.name) - 1 <= best["steps"] <= int(newest.name)


# Training itself, from the command on.


RECIPE = """
evaluation: {robots: 2, control_steps: 4, export: false}
learner:
  environments: 8
  horizon: 4
  steps: 1000000
  evaluate_steps: 64
  keep: 2
  checkpoint_minutes: 0
  discriminator: {batch: 16, replay: 256, updates: 1}
"""


def prepare_training(folder: Path, train: Callable[..., None] = keystride) -> None:
    """In a fork, killed when it has written some checkpoints: what training leaves in a process stays out of this one."""
    (folder / "recipe.yaml").write_text(RECIPE)

    def action() -> None:
        def seen(event: str) -> None:
            if os.path.exists(folder / "run" / "checkpoints" / "00000003"):
                os.kill(os.getpid(), signal.SIGKILL)

        watch(folder, seen)
        recipe = folder / "recipe.yaml"
        train("train", "--runs", folder, "--name", "run", "--config", recipe, "--processes", 1)

    assert forked(action) == -signal.SIGKILL


def resume_training(folder: Path, train: Callable[..., None] = keystride) -> None:
    train("train", "--runs", folder, "--name", "run", "--resume")


def check_training(folder: Path, processes: int = 1) -> None:
    import yaml

    from keystride.learner.checkpoint import checkpoints, load_tree
    from keystride.policy.curve import read_curve

    run = folder / "run"
    numbered = checkpoints(run / "checkpoints")
    assert numbered
    for stem in ("learner", *(f"process{rank}" for rank in range(processes))):
        load_tree(numbered[-1] / stem)
    best = load_tree(run / "best" / "learner")
    assert json.loads((run / "best" / "figures.json").read_text())["steps"] == best["steps"]
    read_curve(run / "metrics.jsonl")
    settings = yaml.safe_load((run / "config.yaml").read_text())
    assert settings["name"] == "run"


# Training in two processes, as torchrun starts them. One is killed; the other gets SIGTERM, as the launcher sends it.


def in_two_processes(killed: int, *arguments: object) -> None:
    """Run a command as the process of a rank that is killed, and in a fork as the other one."""
    from keystride.training.launch import unused_port

    os.environ |= {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(unused_port())}
    other = os.fork() == 0
    if other:
        sys.setprofile(None)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(1 - killed if other else killed)
    if not other:
        keystride(*arguments)
        return
    try:
        os.dup2(1, 2)  # it says that it lost its connection
        keystride(*arguments)
    finally:
        os._exit(0)


def in_processes(killed: int) -> Work:
    train = partial(in_two_processes, killed)
    return Work(
        partial(prepare_training, train=train),
        partial(resume_training, train=train),
        partial(check_training, processes=2),
        operations=60,
    )


WORKS = {
    "script": Work(lambda folder: save_script(script(), folder / "script.yaml"), save_new_script, check_script),
    "studio": Work(prepare_studio, save_in_studio, check_studio),
    "library": Work(lambda folder: library(swaying(), folder / "library"), save_new_library, check_library),
    "renames": Work(lambda folder: library(swaying(), folder / "library"), rename_new_library, check_library),
    "import": Work(prepare_import, import_library, lambda folder: check_library(folder / "libraries")),
    "export": Work(prepare_policy, export_policy, check_policy),
    "run": Work(lambda folder: save_run(folder, 1, 4), lambda folder: save_run(folder, 4, 7), check_run),
    "bundle": Work(prepare_bundle, pack_bundle, check_bundle),
    "training": Work(prepare_training, resume_training, check_training),
    "first of two": in_processes(killed=0),
    "second of two": in_processes(killed=1),
}

UNSAFE = replace(WORKS["script"], change=lambda folder: _overwrite(folder / "script.yaml"))
"""What must not be done: kills have to find it."""


def _overwrite(path: Path) -> None:
    path.write_text(path.read_text().replace("first", "new"))


def check_leftovers(place: Path) -> None:
    """What a kill left beside a file or folder is found and removed."""
    files.recover(place)
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def forked(action: Callable[[], None]) -> int:
    """Run in a fork; return its exit code, or minus the signal that ended it."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            action()
            code = WHOLE
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    wait_for_orphans()
    return code


def wait_for_orphans() -> None:
    """Wait for the processes that a killed one has started; kill them after the time that the launcher gives them."""
    until = time.monotonic() + GRACE_SECONDS
    with suppress(ChildProcessError):  # there are none left
        while os.waitpid(-1, os.WNOHANG)[0] or time.monotonic() < until:
            time.sleep(0.01)
        for process in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            os.kill(int(process), signal.SIGKILL)
            os.waitpid(int(process), 0)


def watch(folder: Path, seen: Callable[[str], None]) -> None:
    """Call a function with the name of every operation of this process on files of the folder, before it happens."""

    began, own = False, os.getpid()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal began
        if (
            os.getpid() == own
            and event in EVENTS
            and any(isinstance(one, str | Path) and str(one).startswith(str(folder)) for one in args)
        ):
            began = True
            seen(event)

    def profile(frame: Any, event: str, arg: Any) -> None:
        if not began or event not in ("c_call", "c_return") or arg.__name__ not in CALLS:
            return
        name = getattr(arg.__self__, "name", "")  # of the open file; what is printed does not count
        if arg.__name__ == "fsync" or str(name).startswith(str(folder)):
            seen(arg.__name__ if event == "c_call" else f"after {arg.__name__}")

    sys.addaudithook(hook)
    sys.setprofile(profile)


def measure(work: Work, folder: Path) -> tuple[list[str], float]:
    """Return the operations on files that the work has, and how much processor time it takes."""
    reader, writer = os.pipe()

    def action() -> None:
        events: list[str] = []

        def seen(event: str) -> None:
            events.append(event)
            if len(events) > work.operations:
                tell()
                os._exit(WHOLE)

        def tell() -> None:
            os.write(writer, json.dumps([events, process_time() - began]).encode())

        began = process_time()
        watch(folder, seen)
        work.change(folder)
        tell()

    assert forked(action) == WHOLE
    os.close(writer)
    with os.fdopen(reader) as told:
        events, seconds = json.load(told)
    return events, seconds


def kill(work: Work, folder: Path, operations: list[str], seconds: float, random: Random) -> tuple[int, str]:
    """Do the work in a fork that ends at a random moment; return its exit code and what it was about to do."""
    chosen = random.choice(sorted(set(operations)))  # of every kind as often: most operations open files
    at = random.choice([row for row, name in enumerate(operations) if name == chosen])
    by_time = random.random() < 0.4
    moment = random.uniform(1e-5, seconds)

    def action() -> None:
        count = 0

        def seen(event: str) -> None:
            nonlocal count
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

        if by_time:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, moment)
        else:
            watch(folder, seen)
        work.change(folder)

    return forked(action), "in between" if by_time else chosen


@dataclass
class Count:
    killed: int = 0
    lost: int = 0
    unfinished: int = 0  # kills that left something under a temporary name
    moments: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        moments = ", ".join(f"{name} {number}" for name, number in self.moments.most_common())
        return (
            f"{self.killed:4} kills, {self.lost} with something lost or half-written; "
            f"{self.unfinished} in the middle of a write; before {moments}"
        )


def run(name: str, kills: int, seed: int) -> Count:
    work, random, count = UNSAFE if name == "unsafe" else WORKS[name], Random(f"{name} {seed}"), Count()
    with tempfile.TemporaryDirectory() as place:
        original = Path(place).resolve() / "original"
        original.mkdir()
        work.prepare(original)
        work.check(original)
        folder = original.with_name("work")
        shutil.copytree(original, folder)
        operations, seconds = measure(work, folder)
        while count.killed < kills:
            shutil.rmtree(folder)
            shutil.copytree(original, folder)
            code, moment = kill(work, folder, operations, seconds, random)
            if code == WHOLE:  # it was done before its time came
                continue
            assert code in (-signal.SIGKILL, -signal.SIGPROF), f"{name}: the work itself failed, exit code {code}"
            count.killed += 1
            count.moments[moment] += 1
            count.unfinished += any(".part" in path.name or ".old" in path.name for path in folder.rglob("*"))
            try:
                work.check(folder)
            except Exception as error:
                count.lost += 1
                print(f"{name}: after kill {count.killed}: {type(error).__name__}: {error}", flush=True)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="over all kinds of work")
    parser.add_argument("--only", nargs="+", choices=[*WORKS, "unsafe"], default=tuple(WORKS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a killed process has started becomes a child of this one
    total = Count()
    for name in options.only:
        count = run(name, -(-options.kills // len(options.only)), options.seed)
        total.killed, total.lost = total.killed + count.killed, total.lost + count.lost
        total.unfinished, total.moments = total.unfinished + count.unfinished, total.moments + count.moments
        print(f"{name:14}{count}", flush=True)
    print(f"{'all':14}{total}")
    return total.lost > 0


if __name__ == "__main__":
    sys.exit(main())
