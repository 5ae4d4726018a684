"""Servers for the tests: the real one, and one that plays a script."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]

POLICY = """
[[limit]]
name = "api"
quota = "10/s burst 20"

[[limit]]
name = "login"
by-name = true
per = "user"
quota = "5/min"

[[limit]]
name = "parts"
by-name = true
per = ["ip", "header:x-team"]
quota = "5/min"

[[limit]]
name = "everyone"
by-name = true
per = "global"
quota = "1000/min"
"""


@contextlib.contextmanager
def nobody():
    """An address that refuses connections: it is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def binary():
    """The server as `run-tests` has built it."""
    path = os.environ.get("SPILLGATE_BIN", REPOSITORY / "target" / "debug" / "spillgate")
    assert Path(path).exists(), f"{path} is missing: cargo build -p spillgate-server"
    return path


class Spillgate:
    """`spillgate serve` on a free port."""

    def __init__(self, folder, policy):
        self._file = folder / "spillgate.toml"
        self._file.write_text(policy)
        self._log_path = folder / "log"
        self._log = self._log_path.open("wb")
        listen = ["--http", "127.0.0.1:0", "--resp", "off"]
        self._command = [binary(), "serve", "--config", self._file, *listen]

    def __enter__(self):
        self._process = subprocess.Popen(self._command, stdout=self._log, stderr=self._log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            # It says where it listens once it does.
            if url := re.search(r"https?://\S+", self._log_path.read_text()):
                self.url = url[0]
                return self
            time.sleep(0.02)
        raise AssertionError(f"the server did not start:\n{self._log_path.read_text()}")

    def __exit__(self, *error):
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self._log.close()


class Scripted:
    """Answers every request on loopback with the same bytes."""

    def __init__(self, response, *, keep_alive=True, drip=0):
        self.response = response
        self.connections = 0
        self.requests = []
        self.written = 0
        self.before_response = lambda: None
        self._keep_alive = keep_alive
        self._drip = drip
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = []

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            while (request := self._read(connection)) is not None:
                self.requests.append(request)
                self.before_response()
                self._write(connection)
                if not self._keep_alive:
                    # Without a reset, which would race with the response.
                    connection.shutdown(socket.SHUT_WR)
                    return
        except OSError:
            pass

    @staticmethod
    def _read(connection):
        data = b""
        while True:
            head, end, body = data.partition(b"\r\n\r\n")
            if end:
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                if len(body) >= length:
                    return data
            chunk = connection.recv(65536)
            if not chunk:
                return None
            data += chunk

    def _write(self, connection):
        if not self._drip:
            return connection.sendall(self.response)
        for number in range(len(self.response)):
            connection.sendall(self.response[number : number + 1])
            self.written += 1
            time.sleep(self._drip)
