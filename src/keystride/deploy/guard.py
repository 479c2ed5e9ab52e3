"""A second process that brakes the robot when the first one dies: `python -m keystride.deploy.guard INTERFACE DOMAIN`.

What a Go2's motors do when low commands stop is not documented, so it is not relied on. The guard holds the reading
end of a pipe. When the pipe closes without the word that all is well, however the process that held it ended, it sends
brake commands until the robot has come down.
"""

import subprocess
import sys
import time

from keystride.deploy.clock import Lateness, real_time, ticks

ALL_WELL = "all well"
SECONDS = 5.0  # of braking
PERIOD = 0.002


class Guard:
    """The controlling side."""

    def __init__(self, interface: str, domain: int) -> None:
        command = [sys.executable, "-m", "keystride.deploy.guard", interface, str(domain)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> bool:
        """Until it stands by."""
        return self._process.stdout is not None and self._process.stdout.readline().strip() == "standing by"

    def dismiss(self) -> None:
        """All is well: the robot is down, or was never up."""
        try:
            self._process.communicate(ALL_WELL + "\n", timeout=10.0)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()


def main(interface: str, domain: int) -> int:
    from keystride.deploy.codec import encode_command
    from keystride.deploy.link import RobotLink, join
    from keystride.deploy.safety import brake
    from keystride.robot.go2 import GO2

    with real_time():
        link = RobotLink(join(interface, domain))
        command = encode_command(GO2, brake())
        print("standing by", flush=True)
        if sys.stdin.readline().strip() == ALL_WELL:
            return 0
        end = time.monotonic() + SECONDS
        for now in ticks(PERIOD, Lateness()):
            link.send(command)
            if now > end:
                break
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
