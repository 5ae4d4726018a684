"""Middleware for WSGI: Flask, Django, Bottle.

One limit per client address::

    app.wsgi_app = SpillgateMiddleware(app.wsgi_app, limiter="10/s burst 20")

A policy file, or a `Gate` that is shared with other code::

    application = SpillgateMiddleware(application, gate=Policy.load("spillgate.toml"))
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _middleware as common
from ._spillgate import Gate, InvalidRequest, Limiter, Policy

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from .types import Key

__all__ = ["SpillgateMiddleware"]

KeyFunction: TypeAlias = "Callable[[WSGIEnvironment], Key | None]"


class SpillgateMiddleware:
    """Asks a gate, or a limiter, about every request.

    - `gate`: a `Gate`, a `Policy`, or the text of one.
    - `limiter`: a `Limiter`, or the text of a quota; with `key`, a function of the environment that
      returns what to count by, or None for a request that is not limited. By default the client's
      address is counted.
    - `on_error`: what happens if the key function, or the decision itself, raises. `"raise"` lets the
      server answer 500; `"allow"` logs the exception and lets the request pass.

    A refused request never reaches the application. Permits of concurrency limits are held until the
    server closes the response, which it does also after an error.
    """

    def __init__(
        self,
        app: WSGIApplication,
        gate: Gate | Policy | str | None = None,
        *,
        limiter: Limiter | str | None = None,
        key: KeyFunction | None = None,
        on_error: common.OnError = "raise",
    ) -> None:
        self.app = app
        self.gate, self.limiter = common.configured(gate, limiter, key, on_error)
        self._key: KeyFunction = key or (lambda environ: common.address_key(_peer(environ)))
        self._on_error = on_error

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        try:
            outcome = self._decide(environ)
        except Exception:
            if self._on_error == "raise":
                raise
            common.logger.exception("rate limit not checked; the request passes")
            return self.app(environ, start_response)
        if outcome is None:
            return self.app(environ, start_response)
        if not outcome.allowed:
            headers = [*outcome.headers, ("content-length", str(len(outcome.body)))]
            start_response(common.status_line(outcome.status), headers)
            return [] if environ.get("REQUEST_METHOD") == "HEAD" else [outcome.body]
        if outcome.wait > 0:
            try:
                time.sleep(outcome.wait)
            except BaseException:
                outcome.cancel()
                raise
        outcome.start()
        return _run(self.app, environ, start_response, outcome)

    def _decide(self, environ: WSGIEnvironment) -> common.Decided | None:
        if self.gate is not None:
            return _ask(self.gate, environ)
        assert self.limiter is not None
        key = self._key(environ)
        return None if key is None else common.of_decision(self.limiter.check(key))


def _run(
    app: WSGIApplication,
    environ: WSGIEnvironment,
    start_response: StartResponse,
    outcome: common.Decided,
) -> Iterable[bytes]:
    def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None, /) -> Any:
        try:
            outcome.settle(int(status[:3]), headers)
        except common.UNREADABLE as error:
            common.logger.warning("response not read, the cost stands: %s", error)
        headers = common.merged(headers, outcome.headers)
        # Some servers do not take an absent exc_info as None.
        rest = () if exc_info is None else (exc_info,)
        return start_response(status, headers, *rest)

    try:
        body = app(environ, start)
    except BaseException:
        outcome.fail()
        outcome.release()
        raise
    # Without permits the body stays as it is, so that a server can send a file by itself.
    return _Body(body, outcome) if outcome.permits else body


class _Body:
    """A body that ends what its request holds."""

    def __init__(self, body: Iterable[bytes], outcome: common.Decided) -> None:
        self._body = body
        self._chunks = iter(body)
        self._outcome = outcome

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._chunks)
        except BaseException as ending:
            if not isinstance(ending, StopIteration):
                self._outcome.fail()
            self._outcome.release()
            raise

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._outcome.release()


def _ask(gate: Gate, environ: WSGIEnvironment) -> common.Decided:
    # Both are decoded, as bytes in Latin-1. What the application sees is what is limited.
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    try:
        return gate.decide(
            method=environ.get("REQUEST_METHOD", "GET"),
            path=common.quoted_path(path.encode("latin-1", "replace")) or "/",
            headers=_headers(environ),
            peer=common.address(_peer(environ)),
        )
    except InvalidRequest as error:
        return common.bad_request(error)


def _headers(environ: WSGIEnvironment) -> list[tuple[str, str]]:
    headers = [
        (name[5:].replace("_", "-"), value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    ]
    if content_type := environ.get("CONTENT_TYPE"):
        headers.append(("content-type", content_type))
    return headers


def _peer(environ: WSGIEnvironment) -> str | None:
    return environ.get("REMOTE_ADDR")
