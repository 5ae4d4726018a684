"""A Redis of its own for a test, on a socket in the file system."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path


@contextlib.contextmanager
def redis_server():
    """Yields its URL, and a function that ends it."""
    program = shutil.which("redis-server")
    assert program, "redis-server is not installed"
    # A short path: sockets have room for 108 bytes.
    with tempfile.TemporaryDirectory(prefix="spillgate-") as folder:
        path = Path(folder) / "redis.sock"
        server = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_for(path, server)
            yield f"unix://{path}", lambda: end(server)
        finally:
            end(server)


def wait_for(path, server):
    for _ in range(1000):
        with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
            connection.connect(str(path))
            return
        assert server.poll() is None, "redis-server ended"
        time.sleep(0.01)
    raise TimeoutError("redis-server does not answer")


def end(server):
    server.terminate()
    server.wait(60)
