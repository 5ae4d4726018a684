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
import os
import socket
import time
from collections.abc import Mapping
from types import TracebackType
from typing import cast

from . import _http
from ._client import (
    MAX_IDLE,
    Answer,
    Checks,
    LimitKey,
    RequestHeaders,
    ServerError,
    ServerUnavailable,
    Settings,
    limit_question,
    limits_question,
    request_question,
)

__all__ = ["Answer", "AsyncClient", "Client", "ServerError", "ServerUnavailable"]


class Client(Settings):
    """A client for threads. All of them may share one; connections are kept open."""

    _idle: list[socket.socket]
    _process: int

    def _open(self) -> None:
        # No lock: to append and to pop are atomic, and a fork copies no list that is half changed.
        self._process, self._idle = os.getpid(), []

    def check(self, limit: str, key: LimitKey = None, cost: int = 1) -> Answer:
        """Spends under a limit by name. `key` is what it counts by; None if it is global."""
        return self._ask(limit_question(limit, key, cost))

    def check_all(self, checks: Checks) -> Answer:
        """Spends under several limits, or under none if one denies."""
        return self._ask(limits_question(checks))

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
        return self._ask(request_question(path, method, host, headers, ip))

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
            # Those that are idle may be as dead.
            self.close()
            return self._failed(error)
        except BaseException:
            self._breaker.cancel()
            raise

    def _exchange(self, request: bytes, deadline: float) -> _http.Response:
        if (connection := self._take()) is not None:
            # A connection that was idle may be closed by now. Sent twice, a question is charged
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


class AsyncClient(Settings):
    """A client for asyncio. All tasks of a loop may share one; connections are kept open."""

    _idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    _loop: asyncio.AbstractEventLoop | None

    def _open(self) -> None:
        self._loop, self._idle = None, []

    async def check(self, limit: str, key: LimitKey = None, cost: int = 1) -> Answer:
        """Spends under a limit by name. `key` is what it counts by; None if it is global."""
        return await self._ask(limit_question(limit, key, cost))

    async def check_all(self, checks: Checks) -> Answer:
        """Spends under several limits, or under none if one denies."""
        return await self._ask(limits_question(checks))

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
        return await self._ask(request_question(path, method, host, headers, ip))

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
        except (OSError, asyncio.TimeoutError, _http.Malformed) as error:
            # Those that are idle may be as dead.
            await self.close()
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
