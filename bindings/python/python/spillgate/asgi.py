"""Middleware for ASGI: FastAPI, Starlette, Django, Quart.

One limit per client address::

    app.add_middleware(SpillgateMiddleware, limiter="10/s burst 20")

A policy file, or a `Gate` that is shared with other code::

    app.add_middleware(SpillgateMiddleware, gate=Policy.load("spillgate.toml"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _middleware as common
from ._spillgate import Gate, InvalidRequest, Limiter, Outcome, Policy

if TYPE_CHECKING:
    from .types import Key

__all__ = ["SpillgateMiddleware"]

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
KeyFunction: TypeAlias = Callable[[Scope], "Key | None | Awaitable[Key | None]"]


class SpillgateMiddleware:
    """Asks a gate, or a limiter, about every HTTP request and every WebSocket handshake.

    - `gate`: a `Gate`, a `Policy`, or the text of one.
    - `limiter`: a `Limiter`, or the text of a quota; with `key`, a function of the scope that returns
      what to count by, or None for a request that is not limited. It may be asynchronous. By default
      the client's address is counted.
    - `on_error`: what happens if the key function, or the decision itself, raises. `"raise"` lets the
      server answer 500; `"allow"` logs the exception and lets the request pass.

    A refused request never reaches the application. Permits of concurrency limits are held until the
    response's body has ended, or the application has returned or raised.
    """

    def __init__(
        self,
        app: App,
        gate: Gate | Policy | str | None = None,
        *,
        limiter: Limiter | str | None = None,
        key: KeyFunction | None = None,
        on_error: common.OnError = "raise",
    ) -> None:
        self.app = app
        self.gate, self.limiter = common.configured(gate, limiter, key, on_error)
        self._key: KeyFunction = key or (lambda scope: common.address_key(_peer(scope)))
        self._on_error = on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        try:
            outcome = await self._decide(scope)
        except Exception:
            if self._on_error == "raise":
                raise
            common.logger.exception("rate limit not checked; the request passes")
            return await self.app(scope, receive, send)
        if outcome is None:
            return await self.app(scope, receive, send)
        if not outcome.allowed:
            return await _refuse(outcome, scope, send)
        if outcome.wait > 0:
            try:
                await asyncio.sleep(outcome.wait)
            except BaseException:
                outcome.cancel()
                raise
        outcome.start()
        is_remote = self.gate is not None and not self.gate.in_process
        await _Response(outcome, send, is_remote).run(self.app, scope, receive)

    async def _decide(self, scope: Scope) -> common.Decided | None:
        if self.gate is not None:
            return await _ask(self.gate, scope)
        assert self.limiter is not None
        key = self._key(scope)
        if isawaitable(key):
            key = await key
        return None if key is None else common.of_decision(self.limiter.check(key))


#: What begins a response, and its status if the message has none. A server answers a WebSocket that is
#: closed before it was accepted with a 403 of its own.
_STATUS = {
    "http.response.start": 200,
    "websocket.accept": 101,
    "websocket.http.response.start": 200,
    "websocket.close": 403,
}
_BODY = ("http.response.body", "websocket.http.response.body")


class _Response:
    """Sends a response with its headers, and ends what the request holds."""

    def __init__(self, outcome: common.Decided, send: Send, is_remote: bool) -> None:
        self._outcome = outcome
        self._send = send
        self._is_remote = is_remote
        self._started = False

    async def run(self, app: App, scope: Scope, receive: Receive) -> None:
        try:
            await app(scope, receive, self.send)
        except Exception:
            if not self._started:
                self._outcome.fail()
            raise
        finally:
            self._outcome.release()

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind in _STATUS and not self._started:
            self._started = True
            headers = [(bytes(name), bytes(value)) for name, value in message.get("headers") or ()]
            await self._settle(message.get("status", _STATUS[kind]), headers)
            if kind != "websocket.close":
                message = {**message, "headers": self._with_limits(headers)}
        await self._send(message)
        if kind in _BODY and not message.get("more_body"):
            # A framework may run background tasks before it returns.
            self._outcome.release()

    def _with_limits(self, own: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        if not any(name.lower().startswith(b"x-ratelimit-") for name, _ in own):
            return [*own, *self._outcome.raw_headers]
        decoded = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in own]
        return common.encoded(common.merged(decoded, self._outcome.headers))

    async def _settle(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        try:
            if self._is_remote and isinstance(self._outcome, Outcome):
                await self._outcome.settle_async(status, headers)
            else:
                self._outcome.settle(status, headers)
        except common.UNREADABLE as error:
            common.logger.warning("response not read, the cost stands: %s", error)


async def _ask(gate: Gate, scope: Scope) -> common.Decided:
    # Not `raw_path`: what the application sees is what is limited.
    path = scope["path"].encode("utf-8", "surrogatepass")
    request: dict[str, Any] = {
        "method": scope.get("method", "GET"),
        "path": common.quoted_path(path) or "/",
        "headers": scope["headers"],
        "peer": common.address(_peer(scope)),
    }
    try:
        return gate.decide(**request) if gate.in_process else await gate.decide_async(**request)
    except InvalidRequest as error:
        return common.bad_request(error)


async def _refuse(outcome: common.Decided, scope: Scope, send: Send) -> None:
    kind = "http.response"
    if scope["type"] == "websocket":
        kind = "websocket.http.response"
        if kind not in (scope.get("extensions") or {}):
            # The server answers 403, since it can send no other response.
            return await send({"type": "websocket.close", "code": 1013, "reason": "rate limited"})
    length = (b"content-length", str(len(outcome.body)).encode())
    headers = [*outcome.raw_headers, length]
    body = b"" if scope.get("method") == "HEAD" else outcome.body
    await send({"type": f"{kind}.start", "status": outcome.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


def _peer(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None
