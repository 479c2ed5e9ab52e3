"""`python -m keystride.training.worker FOLDER`: one of several processes that train a run together."""

import sys
import traceback
from dataclasses import replace
from pathlib import Path

from keystride.errors import UserError
from keystride.training.config import CONFIG, read_config
from keystride.training.launch import report_failure
from keystride.training.signals import follow_parent


def main(folder: Path) -> int:
    follow_parent()
    try:
        from keystride.training.loop import run_process

        run_process(replace(read_config(folder / CONFIG), runs=folder.parent, name=folder.name))
    except Exception as error:
        message = _message(error)
        report_failure(message or traceback.format_exc(), by_user=message is not None)
        return 1
    return 0


def _message(error: Exception) -> str | None:
    """Return what to tell the user, or None when the failure is a defect of the program."""
    from keystride.policy.metadata import PolicyError

    if isinstance(error, (UserError, PolicyError)):
        return str(error)
    if isinstance(error, OSError):  # such as a full disk
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
