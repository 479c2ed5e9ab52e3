"""Several processes of this same command, one a core, that find each other as torchrun's would."""

import os
import socket
import subprocess
import sys


def launch(processes: int) -> int:
    """One thread each: two threads in one process spin on small tensors."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {**os.environ, "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-m", "keystride", *sys.argv[1:]]
    children = [subprocess.Popen(command, env={**shared, "RANK": str(rank)}) for rank in range(processes)]
    try:
        codes = [child.wait() for child in children]
    except KeyboardInterrupt:
        for child in children:
            child.terminate()
        codes = [child.wait() for child in children]
    return max(abs(code) for code in codes)
