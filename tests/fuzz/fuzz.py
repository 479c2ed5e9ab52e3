"""Give every reader damaged files and see that each is read or refused in one line, in bounded time and memory.

    python tests/fuzz/fuzz.py --files 10000            all readers; exit code 1 when anything but a clear error came up
    python tests/fuzz/fuzz.py --case 4711              one case again, with its traceback

Cases are numbered, and a case is the same on every machine. They run in processes of their own; the bound on time is
one of processor time, so that a busy machine changes nothing.
"""

import argparse
import gzip
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from mutations import mutate
from seeds import SEEDS, Seed, write_seeds

CPU_SECONDS = 20  # for one file
WALL_SECONDS = 600  # for one file: only a reader that waits for something gets there
MEMORY = 768  # MB more than before, for one file
LONGEST = 1000  # characters of a message
NOT_FOR_USERS = re.compile(
    r"\.part\b|<class |instance of|Error\(|NoneType|object is not [a-z]+able\b|no attribute|unsupported operand|indices must"
)  # names of temporary files, and Python's own words
GOOD = ("error", "accepted")
READY = "ready"  # what a worker says first


@dataclass(frozen=True)
class Outcome:
    case: int
    seed: str
    kind: str  # error, accepted, traceback, unclear, memory, hang, crash
    message: str = ""
    seconds: float = 0.0
    megabytes: float = 0.0


def choose(case: int, names: tuple[str, ...]) -> tuple[str, Random]:
    """Return the seed of a case, and the generator that damages it."""
    random = Random(f"keystride {case}")
    return random.choices(names, [SEEDS[name].share for name in names])[0], random


def prepare(seeds: Path, name: str, random: Random, folder: Path) -> Path:
    """Copy a seed and damage its file; return the file."""
    seed = SEEDS[name]
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(seeds / name, folder)
    path = folder / seed.file
    path.write_bytes(damaged(path.read_bytes(), seed, random))
    return path


def damaged(content: bytes, seed: Seed, random: Random) -> bytes:
    if not seed.packed:
        return mutate(content, seed.kind, random)
    if random.random() < 0.3:
        return mutate(content, "text", random)
    if random.random() < 0.1:
        return gzip.compress(b" " * random.choice((1, 300_000_000)), compresslevel=1, mtime=0)
    return gzip.compress(mutate(gzip.decompress(content), seed.kind, random), compresslevel=1, mtime=0)


def judge(path: Path, message: str) -> str:
    """An error is clear when each of its lines is short, printable, names the file or its folder, and has no Python in it."""
    names = {path.name, path.parent.name, "walk.npz", "other.npz", "go2.xml", "robot.xml", "robot.yaml"} | {
        one.name for one in path.parent.iterdir()
    }
    for line in message.split("\n"):
        printable = all(letter.isprintable() for letter in line)
        if not line.strip() or not printable or len(line) > LONGEST or not any(name in line for name in names):
            return "unclear"
        if NOT_FOR_USERS.search(line):
            return "unclear"
    return "error"


def run_case(case: int, seeds: Path, names: tuple[str, ...], folder: Path, *, show: bool = False) -> Outcome:
    from readers import READERS

    from keystride.errors import FileError, UserError

    name, random = choose(case, names)
    path = prepare(seeds, name, random, folder)
    reset_peak()
    began, before = time.process_time(), memory("VmRSS")
    resource.setrlimit(resource.RLIMIT_CPU, (int(began) + CPU_SECONDS + 1, resource.RLIM_INFINITY))
    kind, message = "accepted", ""
    try:
        READERS[SEEDS[name].reader](path)
    except (FileError, UserError, OSError) as error:
        filename = getattr(error, "filename", None)
        message = f"{filename}: {error.strerror}" if isinstance(error, OSError) and filename else str(error)
        kind = judge(path, message)
        if show:
            traceback.print_exc()
    except MemoryError:
        kind, message = "memory", traceback.format_exc()
    except Exception:
        kind, message = "traceback", traceback.format_exc()
    grown = memory("VmHWM") - before
    if grown > MEMORY and kind in GOOD:
        kind = "memory"
    return Outcome(case, name, kind, message, time.process_time() - began, grown)


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def memory(what: str) -> float:
    """Return an entry of /proc/self/status in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(what))


def work(seeds: Path, names: tuple[str, ...]) -> None:
    """A worker: case numbers in, outcomes out."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a reader prints goes elsewhere
    import warnings

    import readers  # noqa: F401 (so that no case pays for it)

    warnings.simplefilter("ignore")
    limit = int((memory("VmData") + 4 * MEMORY) * 1e6)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    print(READY, file=answers, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            outcome = run_case(int(line), seeds, names, Path(folder) / "case")
            print(json.dumps(asdict(outcome)), file=answers, flush=True)


class Worker:
    def __init__(self, seeds: Path, names: tuple[str, ...]) -> None:
        self.command = [sys.executable, __file__, "--work", str(seeds), "--only", *names]
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        if process.stdout.readline().strip() != READY:
            raise RuntimeError(f"a worker cannot start; see {' '.join(self.command)}")
        return process

    def run(self, case: int, names: tuple[str, ...]) -> Outcome:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        timer = threading.Timer(WALL_SECONDS, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(f"{case}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if answer:
            return Outcome(**json.loads(answer))
        code = self.process.wait()
        self.process = self.start()
        kind = "hang" if code in (-signal.SIGXCPU, -signal.SIGKILL) else "crash"
        return Outcome(case, choose(case, names)[0], kind, f"the process ended with {code}")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def run_cases(cases: Iterable[int], seeds: Path, names: tuple[str, ...], workers: int) -> Iterator[Outcome]:
    """Run cases in processes of their own, in no particular order."""
    from queue import Queue

    numbers, lock = iter(cases), threading.Lock()
    outcomes: Queue[Outcome | RuntimeError | None] = Queue()

    def loop() -> None:
        try:
            worker = Worker(seeds, names)
            while True:
                with lock:
                    case = next(numbers, None)
                if case is None:
                    break
                outcomes.put(worker.run(case, names))
            worker.close()
        except RuntimeError as error:
            outcomes.put(error)
        outcomes.put(None)

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for _ in threads:
        while (outcome := outcomes.get()) is not None:
            if isinstance(outcome, RuntimeError):
                raise outcome
            yield outcome


def table(outcomes: list[Outcome]) -> str:
    kinds = ("accepted", "error", "unclear", "traceback", "hang", "crash", "memory")
    lines = [f"{'seed':16}{'files':>7}" + "".join(f"{kind:>10}" for kind in kinds) + f"{'most MB':>9}{'most s':>8}"]
    for name in (*dict.fromkeys(sorted(one.seed for one in outcomes)), "all"):
        own = [one for one in outcomes if name in (one.seed, "all")]
        counts = "".join(f"{sum(one.kind == kind for one in own):>10}" for kind in kinds)
        most = f"{max(one.megabytes for one in own):>9.0f}{max(one.seconds for one in own):>8.2f}"
        lines.append(f"{name:16}{len(own):>7}{counts}{most}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="run this case alone and show its traceback")
    parser.add_argument("--only", nargs="+", choices=SEEDS, default=tuple(SEEDS))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--messages", action="store_true", help="print a message of every sort")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = tuple(options.only)
    if options.work:
        work(options.work, names)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds"
        write_seeds(seeds, names)
        if options.case is not None:
            outcome = run_case(options.case, seeds, names, Path(folder) / "case", show=True)
            print(outcome.seed, outcome.kind, outcome.message, f"{outcome.seconds:.2f} s {outcome.megabytes:.0f} MB")
            return outcome.kind not in GOOD
        outcomes = []
        for outcome in run_cases(range(options.first, options.first + options.files), seeds, names, options.workers):
            outcomes.append(outcome)
            if outcome.kind not in GOOD:
                print(f"case {outcome.case} ({outcome.seed}): {outcome.kind}: {outcome.message}", flush=True)
    if options.messages:
        show_messages(outcomes)
    print(table(outcomes))
    return any(outcome.kind not in GOOD for outcome in outcomes)


def show_messages(outcomes: list[Outcome]) -> None:
    """Print messages that differ in more than numbers and names."""
    errors = sorted((one.seed, one.message.split("\n")[0]) for one in outcomes if one.kind == "error")
    for seed, group in itertools.groupby(errors, lambda pair: pair[0]):
        seen = {" ".join(message.split()[1:4]): message for _, message in group}
        for message in seen.values():
            print(f"{seed}: {message[-300:]}")


if __name__ == "__main__":
    sys.exit(main())
