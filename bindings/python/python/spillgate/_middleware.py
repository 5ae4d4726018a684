"""What the middleware for ASGI and for WSGI have in common."""

from __future__ import annotations

import ipaddress
import json
import logging
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from math import ceil
from typing import Literal, Protocol
from urllib.parse import quote

from ._spillgate import Decision, Gate, Limiter, Policy

OnError = Literal["raise", "allow"]

logger = logging.getLogger("spillgate")

#: What a response raises that is no HTTP. It is the server's to refuse it, not the limiter's.
UNREADABLE = (ValueError, TypeError, OverflowError)

_EXCEEDED = {
    "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
    "title": "Request cannot be satisfied as assigned quota has been exceeded",
}


class Decided(Protocol):
    """The part of an `Outcome` that middleware uses."""

    @property
    def allowed(self) -> bool: ...
    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> list[tuple[str, str]]: ...
    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]: ...
    @property
    def body(self) -> bytes: ...
    @property
    def wait(self) -> float: ...
    @property
    def permits(self) -> int: ...
    def start(self) -> None: ...
    def cancel(self) -> None: ...
    def settle(self, status: int, headers: Iterable[tuple[str | bytes, str | bytes]] = ()) -> None: ...
    def fail(self) -> None: ...
    def release(self) -> None: ...


class Plain:
    """An answer that holds nothing and learns nothing from the response."""

    permits = 0

    def __init__(
        self, status: int, headers: list[tuple[str, str]], body: bytes = b"", wait: float = 0
    ) -> None:
        self.allowed = status == 200
        self.status = status
        self.headers = headers
        self.body = body
        self.wait = wait

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        return encoded(self.headers)

    def start(self) -> None: ...

    def cancel(self) -> None: ...

    def settle(self, status: int, headers: Iterable[tuple[str | bytes, str | bytes]] = ()) -> None: ...

    def fail(self) -> None: ...

    def release(self) -> None: ...


def encoded(headers: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def configured(
    gate: Gate | Policy | str | None, limiter: Limiter | str | None, key: object, on_error: str
) -> tuple[Gate | None, Limiter | None]:
    """What the arguments of a middleware mean: one of the two."""
    if (gate is None) == (limiter is None):
        raise TypeError("pass either gate or limiter")
    if key is not None and limiter is None:
        raise TypeError("key belongs to limiter; a policy says itself what it counts by")
    if on_error not in ("raise", "allow"):
        raise ValueError(f'on_error "{on_error}" is invalid; use "raise" or "allow"')
    if gate is not None:
        return (gate if isinstance(gate, Gate) else Gate(gate)), None
    return None, (Limiter(limiter) if isinstance(limiter, str) else limiter)


def of_decision(decision: Decision) -> Plain:
    """The response that a limiter's decision means, as a gate's limit "default" would have it."""
    window = "" if decision.window is None else f";w={_integer(ceil(decision.window))}"
    policy = f'"default";q={_integer(decision.limit)}{window}'
    state = f'"default";r={_integer(decision.remaining)}'
    headers = [
        ("x-ratelimit-limit", str(decision.limit)),
        ("x-ratelimit-remaining", str(decision.remaining)),
    ]
    if decision.reset_after is not None:
        reset = ceil(decision.reset_after)
        state = f"{state};t={_integer(reset)}"
        headers.append(("x-ratelimit-reset", str(reset)))
    headers += [("ratelimit-policy", policy), ("ratelimit", state)]
    if decision.allowed:
        return Plain(200, headers, wait=decision.wait)
    detail = "The limit default never lets this request pass. Waiting does not help."
    if decision.retry_after_secs is not None:
        seconds = max(decision.retry_after_secs, 1)
        headers.append(("retry-after", str(seconds)))
        detail = f"The limit default is exceeded. Try again in {seconds} s."
    problem = {**_EXCEEDED, "status": 429, "detail": detail, "violated-policies": ["default"]}
    return _problem(problem, headers)


def _integer(value: int) -> int:
    """The largest that a structured field can hold."""
    return min(value, 999_999_999_999_999)


def bad_request(error: Exception) -> Plain:
    """The response to a request that a gate cannot read."""
    problem = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": str(error)}
    return _problem(problem, [])


def _problem(problem: dict[str, object], headers: list[tuple[str, str]]) -> Plain:
    status = problem["status"]
    assert isinstance(status, int)
    headers.append(("content-type", "application/problem+json"))
    return Plain(status, headers, json.dumps(problem, separators=(",", ":")).encode())


def status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Refused"


@lru_cache(maxsize=4096)
def address(peer: str | None) -> str | None:
    """The peer's address; None for a Unix socket or a test client."""
    try:
        return str(ipaddress.ip_address((peer or "").partition("%")[0]))
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def address_key(peer: str | None) -> str:
    """What a limiter counts by if there is no key function: an IPv6 client has a whole /64. All
    requests without an address share one key."""
    known = address(peer)
    if known is None:
        return ""
    parsed = ipaddress.ip_address(known)
    if isinstance(parsed, ipaddress.IPv4Address):
        return known
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def quoted_path(path: bytes) -> str:
    """A decoded path as it could have been sent."""
    return quote(path, safe="/:@!$&'()*+,;=-._~")


def merged(own: list[tuple[str, str]], added: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers of the service and those of its limits. `ratelimit` is a list, which both extend. If
    both have `x-ratelimit-…`, the limit with less remaining is shown."""
    left, shown = _remaining(own), _remaining(added)
    if shown is not None and (left is None or left > shown):
        own = [header for header in own if not _is_x(header)]
    elif shown is not None:
        added = [header for header in added if not _is_x(header)]
    return [*own, *added]


def _is_x(header: tuple[str, str]) -> bool:
    return header[0].lower().startswith("x-ratelimit-")


def _remaining(headers: list[tuple[str, str]]) -> int | None:
    for name, value in headers:
        if name.lower() == "x-ratelimit-remaining" and value.isascii() and value.isdigit():
            return int(value)
    return None
