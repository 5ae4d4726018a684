"""Clients for the server, synchronous and asynchronous.

::

    from spillgate.client import Client

    client = Client("http://127.0.0.1:8390")
    if client.check("login", "42").allowed:
        ...

A client that cannot get an answer in time does not fail the program: by default the call is allowed,
and the server is left alone for a moment, so that an outage costs one time-out now and then and not
one per call.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, TypeAlias, cast

from . import _http
from ._breaker import Breaker

__all__ = ["Answer", "AsyncClient", "Client", "ServerError", "ServerUnavailable"]

OnFailure: TypeAlias = Literal["allow", "deny", "raise"]
LimitKey: TypeAlias = "str | Sequence[str] | None"
RequestHeaders: TypeAlias = "Mapping[str, str | Sequence[str]]"

logger = logging.getLogger("spillgate.client")

#: Connections that are kept open for the next call.
MAX_IDLE = 16


class ServerUnavailable(ConnectionError):
    """The server did not answer in time, or not sensibly."""


class ServerError(ValueError):
    """The server refuses the question: an unknown limit, an invalid key, a wrong token."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail


@dataclass(frozen=True)
class Answer:
    """What the server has decided, or the client if `failure` says why there is no answer."""

    allowed: bool
    #: The limit nearest to denying; None if none was met.
    limit: str | None = None
    max: int | None = None
    remaining: int | None = None
    #: Seconds until the same call would be allowed: 0 if it is, None if waiting does not help.
    retry_after: float | None = None
    reset_after: float | None = None
    #: Seconds to wait before going ahead: 0 unless the limit is a shaper.
    wait: float = 0
    blocked: bool = False
    banned: bool = False
    shed: bool = False
    #: For requests and several limits: the state of each.
    limits: list[dict[str, Any]] = field(default_factory=list)
    failure: str | None = None

    def __bool__(self) -> bool:
        return self.allowed


_Number = (int, float, type(None))
_MEMBERS: dict[str, Any] = {
    "allowed": bool,
    "limit": (str, type(None)),
    "max": (int, type(None)),
    "remaining": (int, type(None)),
    "retry_after": _Number,
    "reset_after": _Number,
    "wait": (int, float),
    "blocked": bool,
    "banned": bool,
    "shed": bool,
    "limits": list,
}


class _Settings:
    """What both clients know: where the server is, and what to do without it."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8390",
        *,
        token: str | None = None,
        timeout: float = 0.5,
        on_failure: OnFailure = "allow",
        max_pause: float = 5.0,
        ssl_context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        - `token`: sent as a bearer token; a server on another machine requires it.
        - `timeout`: seconds for a whole call, connection included.
        - `on_failure`: without an answer, `"allow"`, `"deny"`, or `"raise"` `ServerUnavailable`.
        - `max_pause`: the longest that a server that failed is left alone; the first pause is 0.1 s.
        """
        if on_failure not in ("allow", "deny", "raise"):
            raise ValueError(f'on_failure "{on_failure}" is invalid; use "allow", "deny" or "raise"')
        if not timeout > 0:
            raise ValueError(f"timeout {timeout} is invalid; use seconds above 0")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("the token is invalid; use printable ASCII")
        self._target = _http.Target.parse(url)
        self._token = token
        self._timeout = timeout
        self._on_failure = on_failure
        self._ssl = ssl_context
        if self._target.tls and ssl_context is None:
            self._ssl = ssl.create_default_context()
        self._breaker = Breaker(max_pause, clock)
        self._open()

    def _open(self) -> None:
        raise NotImplementedError

    def _request(self, question: Mapping[str, object]) -> bytes:
        body = json.dumps(question).encode()
        return _http.request(self._target, "/v1/check", body, self._token)

    def _answer(self, response: _http.Response) -> Answer:
        try:
            answer = _answer(response)
        except ServerError:
            self._recovered()
            raise
        self._recovered()
        return answer

    def _recovered(self) -> None:
        if self._breaker.succeed():
            logger.info("%s answers again", self._target.authority)

    def _failed(self, error: BaseException) -> Answer:
        reason = str(error) or type(error).__name__
        pause = self._breaker.fail(reason)
        if pause is not None:
            logger.warning(
                "%s does not answer (%s); left alone for %.1f s", self._target.authority, reason, pause
            )
        return self._without_server(reason)

    def _without_server(self, reason: str) -> Answer:
        if self._on_failure == "raise":
            raise ServerUnavailable(f"{self._target.authority} does not answer: {reason}")
        return Answer(self._on_failure == "allow", failure=reason)


class Client(_Settings):
    """A client for threads. All of them may share one; connections are kept open."""

    _idle: list[socket.socket]
    _process: int

    def _open(self) -> None:
        # No lock: to append and to pop are atomic, and a fork copies no list that is half changed.
        self._process, self._idle = os.getpid(), []

    def check(self, limit: str, key: LimitKey = None, cost: int = 1) -> Answer:
        """Spends under a limit by name. `key` is what it counts by; None if it is global."""
        return self._ask(_limit_question(limit, key, cost))

    def check_all(self, checks: Iterable[tuple[str, LimitKey] | tuple[str, LimitKey, int]]) -> Answer:
        """Spends under several limits, or under none if one denies."""
        return self._ask(_limits_question(checks))

    def check_request(
        self,
        path: str,
        *,
        method: str = "GET",
        host: str | None = None,
        headers: RequestHeaders | None = None,
        ip: str | None = None,
    ) -> Answer:
        """Decides a request by the server's policy. `ip` is the address of the peer."""
        return self._ask(_request_question(path, method, host, headers, ip))

    def close(self) -> None:
        """Closes the connections. The client stays usable."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, question: Mapping[str, object]) -> Answer:
        request = self._request(question)
        refusal = self._breaker.refuses()
        if refusal is not None:
            return self._without_server(refusal)
        try:
            return self._answer(self._exchange(request, time.monotonic() + self._timeout))
        except (OSError, _http.Malformed) as error:
            return self._failed(error)
        except BaseException:
            self._breaker.cancel()
            raise

    def _exchange(self, request: bytes, deadline: float) -> _http.Response:
        if (connection := self._take()) is not None:
            # A connection that was idle may be closed by now. Asked twice, a question is charged
            # twice at most, which admits nothing extra.
            response = self._try(connection, request, deadline, is_fresh=False)
            if response is not None:
                return response
        connection = _connect(self._target, deadline)
        response = self._try(connection, request, deadline, is_fresh=True)
        assert response is not None
        return response

    def _try(
        self, connection: socket.socket, request: bytes, deadline: float, *, is_fresh: bool
    ) -> _http.Response | None:
        """The response; None if a connection that was idle is closed."""
        reader = _http.ResponseReader()
        try:
            if is_fresh:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._ssl is not None:
                    connection = self._ssl.wrap_socket(
                        connection, server_hostname=self._target.host
                    )
            connection.settimeout(_remaining(deadline))
            connection.sendall(request)
            while True:
                connection.settimeout(_remaining(deadline))
                data = connection.recv(65536)
                if not data:
                    raise ConnectionResetError("connection closed by the server")
                if (response := reader.feed(data)) is not None:
                    break
        except BaseException as error:
            connection.close()
            if isinstance(error, ConnectionError) and not is_fresh and not reader.has_begun:
                return None
            raise
        self._give_back(connection, response.keeps_alive)
        return response

    def _take(self) -> socket.socket | None:
        if self._process != os.getpid():
            # The parent of a fork goes on using them.
            self._open()
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _give_back(self, connection: socket.socket, keeps_alive: bool) -> None:
        if keeps_alive and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()


class AsyncClient(_Settings):
    """A client for asyncio. All tasks of a loop may share one; connections are kept open."""

    _idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    _loop: asyncio.AbstractEventLoop | None

    def _open(self) -> None:
        self._loop, self._idle = None, []

    async def check(self, limit: str, key: LimitKey = None, cost: int = 1) -> Answer:
        """Spends under a limit by name. `key` is what it counts by; None if it is global."""
        return await self._ask(_limit_question(limit, key, cost))

    async def check_all(
        self, checks: Iterable[tuple[str, LimitKey] | tuple[str, LimitKey, int]]
    ) -> Answer:
        """Spends under several limits, or under none if one denies."""
        return await self._ask(_limits_question(checks))

    async def check_request(
        self,
        path: str,
        *,
        method: str = "GET",
        host: str | None = None,
        headers: RequestHeaders | None = None,
        ip: str | None = None,
    ) -> Answer:
        """Decides a request by the server's policy. `ip` is the address of the peer."""
        return await self._ask(_request_question(path, method, host, headers, ip))

    async def close(self) -> None:
        """Closes the connections. The client stays usable."""
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _ask(self, question: Mapping[str, object]) -> Answer:
        request = self._request(question)
        refusal = self._breaker.refuses()
        if refusal is not None:
            return self._without_server(refusal)
        try:
            response = await asyncio.wait_for(self._exchange(request), self._timeout)
            return self._answer(response)
        except asyncio.TimeoutError:
            return self._failed(TimeoutError("timed out"))
        except (OSError, _http.Malformed) as error:
            return self._failed(error)
        except BaseException:
            self._breaker.cancel()
            raise

    async def _exchange(self, request: bytes) -> _http.Response:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Those of another loop cannot be used here.
            self._loop, self._idle = loop, []
        if self._idle:
            response = await self._try(*self._idle.pop(), request, is_fresh=False)
            if response is not None:
                return response
        reader, writer = await asyncio.open_connection(
            self._target.host, self._target.port, ssl=self._ssl
        )
        return cast(_http.Response, await self._try(reader, writer, request, is_fresh=True))

    async def _try(
        self,
        stream: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        request: bytes,
        *,
        is_fresh: bool,
    ) -> _http.Response | None:
        """The response; None if a connection that was idle is closed."""
        reader = _http.ResponseReader()
        try:
            writer.write(request)
            await writer.drain()
            while True:
                data = await stream.read(65536)
                if not data:
                    raise ConnectionResetError("connection closed by the server")
                if (response := reader.feed(data)) is not None:
                    break
        except BaseException as error:
            writer.close()
            if isinstance(error, ConnectionError) and not is_fresh and not reader.has_begun:
                return None
            raise
        if response.keeps_alive and len(self._idle) < MAX_IDLE:
            self._idle.append((stream, writer))
        else:
            writer.close()
        return response


def _limit_question(limit: str, key: LimitKey, cost: int) -> dict[str, object]:
    question: dict[str, object] = {"limit": limit, "cost": cost}
    if key is not None:
        question["key"] = key if isinstance(key, str) else list(key)
    return question


def _limits_question(
    checks: Iterable[tuple[str, LimitKey] | tuple[str, LimitKey, int]],
) -> dict[str, object]:
    return {"checks": [_limit_question(*check[:2], *(check[2:] or (1,))) for check in checks]}


def _request_question(
    path: str, method: str, host: str | None, headers: RequestHeaders | None, ip: str | None
) -> dict[str, object]:
    request = {"path": path, "method": method, "host": host, "headers": headers, "ip": ip}
    return {"request": {name: value for name, value in request.items() if value is not None}}


def _connect(target: _http.Target, deadline: float) -> socket.socket:
    """A connection to the first address that answers; `create_connection` would give each of them
    the whole time."""
    failure: OSError = ConnectionError(f"no address of {target.host}")
    for family, kind, protocol, _, address in socket.getaddrinfo(
        target.host, target.port, type=socket.SOCK_STREAM
    ):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(_remaining(deadline))
            connection.connect(address)
            return connection
        except OSError as error:
            connection.close()
            failure = error
    raise failure


def _remaining(deadline: float) -> float:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError("timed out")
    return remaining


def _answer(response: _http.Response) -> Answer:
    status = response.status
    try:
        body = json.loads(response.body)
    except (ValueError, RecursionError) as error:
        raise _http.Malformed(f"status {status} without JSON") from error
    if not isinstance(body, dict):
        raise _http.Malformed(f"status {status} without a JSON object")
    # 408 and 429 are of a server, or a proxy, that has too much to do.
    if 400 <= status < 500 and status not in (408, 429):
        raise ServerError(status, str(body.get("detail", "")))
    if status != 200:
        raise _http.Malformed(f"status {status}: {body.get('detail', 'no detail')}")
    known = {name: body[name] for name in _MEMBERS if name in body}
    for name, value in known.items():
        if not isinstance(value, _MEMBERS[name]) or isinstance(value, bool) != (_MEMBERS[name] is bool):
            raise _http.Malformed(f'an answer with "{name}": {json.dumps(value)[:40]}')
    if "allowed" not in known:
        raise _http.Malformed('an answer without "allowed"')
    return Answer(**known)
