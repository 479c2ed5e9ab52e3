"""`keystride motion report`: a page about a library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from keystride.errors import UserError


@dataclass(frozen=True)
class ReportMotion:
    """Write an HTML page about a library: figures, tags, and plots of speed, foot heights and contacts."""

    library: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LIBRARY")]
    """A folder of clips with its index.json."""

    out: Path | None = None
    """Where the page goes. By default, report.html in the library."""

    robot: str = "go2"
    """Name of a robot that ships, or a YAML file that describes one (docs/robots.md)."""

    def run(self) -> int:
        from keystride.motion.library import load_library_clips
        from keystride.motion.report import write_library_report
        from keystride.robot.catalogue import load_robot

        try:
            clips = load_library_clips(self.library)
        except (FileNotFoundError, NotADirectoryError, ValueError) as error:
            raise UserError(str(error)) from error
        if not clips:
            raise UserError(f"{self.library} holds no clips")
        out = self.out or self.library / "report.html"
        write_library_report(clips, load_robot(self.robot), self.library.resolve().name, out)
        print(f"{len(clips)} clips in {out}")
        return 0
