"""`keystride export`: a policy as one self-describing ONNX file, or a run as the bundle that ships."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from keystride.errors import UserError


@dataclass(frozen=True)
class Export:
    """Write a policy as one ONNX file that describes itself and runs without torch, or a run as a bundle."""

    policy: Annotated[str, tyro.conf.Positional]
    """A shipped policy's name, a bundle, an ONNX file, a run (its best policy so far) or a checkpoint of it."""
    out: Path | None = None
    """ONNX file to write."""
    bundle: Path | None = None
    """Folder to write: weights, ONNX files of policy and critics, configuration, learning curve, model card."""
    newest: bool = False
    """Take a run's latest checkpoint instead of its best."""
    card_figures: Path | None = None
    """What `keystride evaluate --json` wrote, for the bundle's model card."""
    card_notes: Path | None = None
    """A Markdown file with further known limits, for the bundle's model card."""

    def run(self) -> int:
        if self.out is None and self.bundle is None:
            raise UserError("nothing to write: give --out FILE.onnx or --bundle FOLDER")
        place = self._place()
        if self.out is not None:
            _write_onnx(place, self.out)
        if self.bundle is not None:
            _write_bundle(place, self.bundle, self.card_figures, self.card_notes)
        return 0

    def _place(self) -> Path:
        from keystride.policy.bundle import find, is_run, run_checkpoint

        place = find(self.policy)
        if not self.newest:
            return place
        if not is_run(place):
            raise UserError(f"--newest asks for a run's latest checkpoint, but {place} is no run")
        checkpoint = run_checkpoint(place, newest=True)
        if checkpoint is None:
            raise UserError(f"{place} holds no checkpoint yet")
        return checkpoint


def _write_onnx(place: Path, out: Path) -> None:
    from keystride.files import write_atomically
    from keystride.policy.loading import policy_content
    from keystride.policy.runtime import Policy

    write_atomically(out, policy_content(place))
    _tell(out, Policy.load(out).metadata.licence)


def _write_bundle(place: Path, bundle: Path, figures: Path | None, notes: Path | None) -> None:
    from keystride.policy.packing import pack
    from keystride.policy.runtime import Policy

    pack(place, bundle, figures, notes)
    _tell(bundle, Policy.load(bundle).metadata.licence)


def _tell(path: Path, licence: str) -> None:
    if "unknown" in licence:
        print(
            "warning: the licence of some training clips is unknown: run where its libraries are found", file=sys.stderr
        )
    print(f"wrote {path} (licence of the weights: {licence})")
