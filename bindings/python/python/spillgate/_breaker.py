"""When to leave a server alone that does not answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from random import uniform

FIRST_PAUSE = 0.1


class Breaker:
    """After a failure, calls are refused for a while; then one is let through to try.

    Each failure in a row doubles the pause, up to a bound. Pauses are shortened at random by up to a
    fifth, so that many processes do not try at once.
    """

    def __init__(self, max_pause: float, clock: Callable[[], float]) -> None:
        if not max_pause > 0:
            raise ValueError(f"max_pause {max_pause} is invalid; use seconds above 0")
        self._max_pause = max_pause
        self._clock = clock
        self._process, self._lock = os.getpid(), threading.Lock()
        self._reason: str | None = None
        self._failures = 0
        self._until = 0.0
        self._is_trying = False

    def refuses(self) -> str | None:
        """The last failure, if the server is to be left alone."""
        if self._reason is None:
            return None
        with self._exclusive():
            if self._reason is None:
                return None
            if self._is_trying or self._clock() < self._until:
                return self._reason
            self._is_trying = True
            return None

    def succeed(self) -> bool:
        """True if it had failed before."""
        if self._reason is None:
            return False
        with self._exclusive():
            recovered = self._reason is not None
            self._reason, self._failures, self._is_trying = None, 0, False
            return recovered

    def fail(self, reason: str) -> float | None:
        """The pause that begins; None if calls that were under way have failed as well."""
        with self._exclusive():
            began = self._reason is None or self._is_trying
            self._reason = reason
            if not began:
                return None
            pause = min(FIRST_PAUSE * 2.0 ** min(self._failures, 30), self._max_pause)
            self._failures += 1
            self._is_trying = False
            self._until = self._clock() + pause * uniform(0.8, 1.0)
            return pause

    def cancel(self) -> None:
        """A call ended without a result, such as a cancelled one: the next may try."""
        with self._exclusive():
            self._is_trying = False

    def _exclusive(self) -> threading.Lock:
        if self._process != os.getpid():
            # In the child of a fork nobody would release what another thread held.
            self._process, self._lock = os.getpid(), threading.Lock()
            self._is_trying = False
        return self._lock
