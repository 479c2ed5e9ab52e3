"""`keystride export`: a policy as one self-describing ONNX file, or a run as the bundle that ships."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from keystride.errors import UserError


@dataclass(frozen=True)
class Export:
    """Write a policy as one self-describing ONNX file that runs without torch, or a run as a bundle."""

    policy: Annotated[str, tyro.conf.Positional]
    """Name of a shipped policy, a bundle folder, an ONNX file, a training run (its best checkpoint) or a checkpoint."""
    out: Path | None = None
    """ONNX file to write."""
    bundle: Path | None = None
    """Folder to write: weights, ONNX files of policy and critics, configuration, learning curve, model card."""
    newest: bool = False
    """Use the latest checkpoint of a run instead of its best."""
    card_figures: Path | None = None
    """Results written by `keystride evaluate --json`, for the bundle's model card."""
    card_notes: Path | None = None
    """Markdown file with further known limits, for the bundle's model card."""
    robot: str = "go2"
    """Name of a robot that ships, or a YAML file that describes one (docs/robots.md)."""

    def run(self) -> int:
        if self.out is None and self.bundle is None:
            raise UserError("nothing to write: give --out FILE.onnx or --bundle FOLDER")
        from keystride.files import write_atomically
        from keystride.policy.loading import policy_content
        from keystride.policy.packing import pack
        from keystride.policy.runtime import Policy
        from keystride.robot.catalogue import load_robot

        place, robot = self._place(), load_robot(self.robot)
        if self.out is not None:
            write_atomically(self.out, policy_content(place, robot))
            _tell(self.out, Policy.load(self.out, robot=robot).metadata.licence)
        if self.bundle is not None:
            pack(place, self.bundle, self.card_figures, self.card_notes, robot=robot)
            _tell(self.bundle, Policy.load(self.bundle, robot=robot).metadata.licence)
        return 0

    def _place(self) -> Path:
        from keystride.policy.bundle import find, is_trained_run, run_checkpoint

        place = find(self.policy)
        if not self.newest:
            return place
        if not is_trained_run(place):
            raise UserError(f"--newest asks for a run's latest checkpoint, but {place} is not a run")
        checkpoint = run_checkpoint(place, newest=True)
        if checkpoint is None:
            raise UserError(f"{place} holds no checkpoint yet")
        return checkpoint


def _tell(path: Path, licence: str) -> None:
    if "unknown" in licence:
        print(
            "warning: the licence of some training clips is unknown; export where the motion libraries can be found",
            file=sys.stderr,
        )
    print(f"wrote {path} (licence of the weights: {licence})")
