"""`keystride motion import` and `keystride motion report`: import motion files into a library, and report on a library."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from keystride.errors import UserError
from keystride.motion.importers.catalogue import IMPORTERS, ImportOptions

if TYPE_CHECKING:
    from rich.console import Console

    from keystride.motion.importers.importing import Imported, RefusedFile
    from keystride.motion.quality import Figures


TABLE_WIDTH = 132  # characters; a narrower terminal wraps lines rather than losing columns
FORMAT_HELP = ". ".join(f"{importer.name}: {importer.about}" for importer in IMPORTERS.values())


@dataclass(frozen=True)
class ImportMotion:
    """Import motion files into a library, and print quality figures of the clips.

    Files that cannot be used are reported with the reason; the others are still imported.

    Example: `keystride motion import dog/ --from mann --out libraries/dog`.
    """

    place: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="PATH")]
    """Folder of motion files, or a single file."""

    out: Path
    """Folder of the library to write. An existing library is replaced once the new one is complete."""

    source: Annotated[
        str,
        tyro.conf.arg(name="from", metavar=f"{{{','.join(IMPORTERS)}}}", help=f"Format of the files. {FORMAT_HELP}."),
    ]

    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""

    skeleton: Path | None = None
    """mann: YAML file that maps BVH nodes to hips and toes. Default: that of the MANN dog."""

    selection: Path | None = None
    """mann: YAML list of frames to leave out, with reasons. Default: that of the MANN files."""

    joint_order: str = "FL FR RL RR"
    """amp, csv, npz: order of the legs in the file."""

    fps: float = 50.0
    """csv: frames per second, which the files do not contain."""

    mirror: bool = False
    """Also write a mirrored copy of every clip. Not needed for training, which mirrors clips itself."""

    licence: str | None = None
    """Licence to record in the metadata of the clips. Known formats have a default."""

    held_out: tuple[str, ...] = ()
    """Names of clips to exclude from training, instead of those in the selection. Default for lifelike: all."""

    def run(self) -> int:
        from rich.console import Console
        from rich.markup import escape

        from keystride.motion.importers.importing import find_files
        from keystride.reading import one_line

        if self.source not in IMPORTERS:
            raise UserError(f"--from {self.source}: unknown format; choose from {', '.join(IMPORTERS)}")
        if not self.place.exists():
            raise UserError(f"{self.place} does not exist")
        files = find_files(self.source, self.place)
        if not files:
            raise UserError(f"{self.place} contains no {self.source} files")
        console = Console()
        console = Console(width=max(console.width, TABLE_WIDTH))
        imported, refused = self._import(files, console)
        if imported:
            self._save(imported)
            _print_table(imported, console)
        for file in refused:
            why = escape(f"{one_line(file.file)}: {one_line(file.reason, 400)}")
            console.print(f"[red]left out[/red] {why}", highlight=False)
        if not imported:
            raise UserError(f"none of {len(files)} files could be imported; nothing was written")
        console.print(f"wrote {len(imported)} clips to {self.out}", highlight=False, markup=False)
        return 0

    def _import(self, files: list[Path], console: Console) -> tuple[list[Imported], list[RefusedFile]]:
        from rich.progress import track

        from keystride.motion.importers.importing import RefusedFile, import_files
        from keystride.robot.catalogue import load_robot

        imported, refused = [], []
        results = import_files(self.source, files, load_robot(self.robot), self._options())
        for result in track(results, f"importing {self.source}", len(files), console=console, transient=True):
            if isinstance(result, RefusedFile):
                refused.append(result)
            else:
                imported.extend(result)
        return imported, refused

    def _options(self) -> ImportOptions:
        from keystride.motion.importers.animal import Selection, load_selection, load_skeleton
        from keystride.motion.importers.poses import ImportProblem, parse_leg_order

        try:
            own_list = (
                self.selection is None and self.skeleton is not None
            )  # the default selection is for the MANN dog only
            return ImportOptions(
                order=parse_leg_order(self.joint_order),
                fps=self.fps,
                skeleton=load_skeleton(self.skeleton),
                selection=Selection() if own_list else load_selection(self.selection),
                licence=self.licence,
                mirrored=self.mirror,
            )
        except (ImportProblem, ValueError) as error:
            raise UserError(str(error)) from error

    def _save(self, imported: list[Imported]) -> None:
        from keystride.motion.library import save_library
        from keystride.robot.catalogue import load_robot

        clips = [one.clip for one in imported]
        try:
            save_library(
                clips, self.out, load_robot(self.robot).name, held_out=self._held_out([clip.name for clip in clips])
            )
        except FileExistsError as error:
            raise UserError(str(error)) from error

    def _held_out(self, names: list[str]) -> list[str]:
        from keystride.motion.importers.animal import load_selection

        importer, chosen = IMPORTERS[self.source], self.held_out
        if importer.held_out and not chosen:
            return names
        if importer.has_selection and not chosen and self.skeleton is None:
            chosen = load_selection(self.selection).held_out
        return [name for name in names if name.removesuffix("_mirrored").partition("-")[0] in chosen]


def _print_table(imported: list[Imported], console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    from keystride.motion.importers.importing import median_residual
    from keystride.motion.quality import Targets, figures, pool
    from keystride.reading import one_line

    table = Table(title="Quality", title_justify="left", box=None, header_style="bold")
    table.add_column("clip", no_wrap=True)
    table.add_column("tags")
    for heading in ("s", "m/s", "penetration mm", "slide m/s", "at limit %", "joint rad/s", "toes mm"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in imported:
        tags = escape(one_line(", ".join(one.clip.tags)))
        table.add_row(escape(one_line(one.clip.name, 40)), tags, *_cells(one.figures, median_residual([one])))
    whole = figures(pool(one.frames for one in imported))
    residual = median_residual(imported)
    table.add_section()
    table.add_row("all", f"{whole.seconds / 60:.1f} min", *_cells(whole, residual), style="bold")
    console.print(table)
    console.print(
        f"foot penetration {1000 * whole.penetration_p99:.2f} mm at the 99th percentile, largest joint speed outside "
        f"flights {100 * whole.motor_share:.0f}% of the motor's rating",
        highlight=False,
    )
    for line in Targets().misses(whole):
        console.print(f"[yellow]missed[/yellow] {line}", highlight=False)


def _cells(row: Figures, residual: float) -> list[str]:
    return [
        f"{row.seconds:.1f}",
        f"{row.mean_speed:.2f}",
        f"{1000 * row.penetration_max:.1f}",
        f"{row.slide:.3f}",
        f"{100 * row.limit_share:.1f}",
        f"{row.joint_speed:.1f}",
        "-" if isnan(residual) else f"{1000 * residual:.1f}",
    ]


@dataclass(frozen=True)
class ReportMotion:
    """Write an HTML report on a library: quality figures, tags, and plots of speed, foot heights and contacts."""

    library: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LIBRARY")]
    """Folder of clips written by `keystride motion import`."""

    out: Path | None = None
    """HTML file to write. Default: report.html in the library."""

    robot: str = "go2"
    """Name of a built-in robot, or a YAML file that describes one (docs/robots.md)."""

    def run(self) -> int:
        from keystride.motion.library import load_library_clips
        from keystride.motion.report import write_library_report
        from keystride.robot.catalogue import load_robot

        try:
            clips = load_library_clips(self.library)
        except (FileNotFoundError, NotADirectoryError, ValueError) as error:
            raise UserError(str(error)) from error
        if not clips:
            raise UserError(f"{self.library} contains no clips")
        out = self.out or self.library / "report.html"
        write_library_report(clips, load_robot(self.robot), self.library.resolve().name, out)
        print(f"wrote {out} ({len(clips)} clips)")
        return 0
