"""HTTP/1.1 as the client of a server needs it: requests with a body, responses of known length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_HEAD = 64 * 1024
MAX_BODY = 16 * 1024 * 1024


class Malformed(Exception):
    """A response that is none."""


@dataclass(frozen=True)
class Target:
    """Where a server is."""

    host: str
    port: int
    tls: bool
    authority: str

    @classmethod
    def parse(cls, url: str) -> Target:
        right = 'use one such as "http://127.0.0.1:8390"'
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii():
            raise ValueError(f'"{url}" is no URL of a server; {right}')
        if parts.path.strip("/") or parts.query or parts.fragment or parts.username:
            raise ValueError(f'"{url}" has more than scheme, host and port; {right}')
        try:
            parts.hostname.encode("idna")
        except UnicodeError as error:
            raise ValueError(f'"{parts.hostname}" is no name of a host ({error}); {right}') from error
        tls = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls, parts.netloc)


def request(target: Target, path: str, body: bytes, token: str | None) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: {target.authority}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    ]
    if token is not None:
        lines.append(f"authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes
    keeps_alive: bool


class ResponseReader:
    """Reads one response from the pieces in which it arrives."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._head: tuple[int, int, bool] | None = None

    @property
    def has_begun(self) -> bool:
        return bool(self._buffer) or self._head is not None

    def feed(self, data: bytes) -> Response | None:
        """The response, once it is complete."""
        self._buffer += data
        if self._head is None and not self._read_head():
            return None
        assert self._head is not None
        status, length, keeps_alive = self._head
        if len(self._buffer) < length:
            return None
        # What comes after the body belongs to no request.
        keeps_alive = keeps_alive and len(self._buffer) == length
        return Response(status, bytes(self._buffer[:length]), keeps_alive)

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if max(end, len(self._buffer) if end < 0 else 0) > MAX_HEAD:
            raise Malformed(f"head of more than {MAX_HEAD} bytes")
        if end < 0:
            if not b"HTTP/1.1 ".startswith(self._buffer[:9]):
                raise Malformed(f"no HTTP/1.1 response: {bytes(self._buffer[:40])!r}")
            return False
        status_line, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        status = _status(status_line)
        headers = dict(_header(line) for line in lines)
        self._head = (status, _length(headers), headers.get("connection", "").lower() != "close")
        return True


def _status(line: str) -> int:
    version, _, rest = line.partition(" ")
    if version != "HTTP/1.1" or not (rest[:3].isascii() and rest[:3].isdigit()):
        raise Malformed(f"no status line of HTTP/1.1: {line[:40]!r}")
    return int(rest[:3])


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name:
        raise Malformed(f"no header: {line[:40]!r}")
    return name.lower(), value.strip()


def _length(headers: Mapping[str, str]) -> int:
    length = headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()) or "transfer-encoding" in headers:
        raise Malformed("no content-length")
    if len(length) > 10 or int(length) > MAX_BODY:
        raise Malformed(f"body of more than {MAX_BODY} bytes")
    return int(length)
