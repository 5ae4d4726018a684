"""What both clients have in common: questions, answers, and what to do without a server."""

from __future__ import annotations

import json
import logging
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from . import _http
from ._breaker import Breaker

OnFailure: TypeAlias = Literal["allow", "deny", "raise"]
LimitKey: TypeAlias = "str | Sequence[str] | None"
Checks: TypeAlias = "Iterable[tuple[str, LimitKey] | tuple[str, LimitKey, int]]"
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


class Settings:
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
        # asyncio's has no text.
        reason = str(error) or "timed out"
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


def limit_question(limit: str, key: LimitKey, cost: int) -> dict[str, object]:
    question: dict[str, object] = {"limit": limit, "cost": cost}
    if key is not None:
        question["key"] = key if isinstance(key, str) else list(key)
    return question


def limits_question(checks: Checks) -> dict[str, object]:
    return {"checks": [limit_question(*check[:2], *(check[2:] or (1,))) for check in checks]}


def request_question(
    path: str, method: str, host: str | None, headers: RequestHeaders | None, ip: str | None
) -> dict[str, object]:
    request = {"path": path, "method": method, "host": host, "headers": headers, "ip": ip}
    return {"request": {name: value for name, value in request.items() if value is not None}}


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
