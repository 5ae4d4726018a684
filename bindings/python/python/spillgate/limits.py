"""Storages for the ``limits`` package, and so for flask-limiter and slowapi.

``spillgate://`` and ``async+spillgate://`` are registered when ``limits`` is imported::

    from limits.storage import storage_from_string

    storage = storage_from_string("spillgate://")

Counts are kept in this process, like those of ``memory://``, and are exact under threads.
``spillgate://?capacity=100000`` bounds the number of windows that are kept (default 1,000,000, at
least 1,000; eight logged times of a moving window count as one more). Expired windows are forgotten.
If more are in use, the one with the least spent of a random few is evicted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import limits.aio.storage
import limits.storage
from limits.errors import ConfigurationError
from limits.storage.base import TimestampedSlidingWindow

from ._spillgate import WindowStore

__all__ = ["AsyncSpillgateStorage", "SpillgateStorage"]

DEFAULT_CAPACITY = 1_000_000


def _store(uri: str | None, options: Mapping[str, object]) -> WindowStore:
    parts = urlsplit(uri or "")
    if parts.netloc or parts.path.strip("/"):
        raise ConfigurationError(
            f'"{uri}" names a host or a path; counts are kept in this process: "spillgate://"'
        )
    settings = {**dict(parse_qsl(parts.query, keep_blank_values=True)), **options}
    capacity = settings.pop("capacity", DEFAULT_CAPACITY)
    for unknown in settings:
        raise ConfigurationError(f'unknown option "{unknown}"; the only one is "capacity"')
    try:
        return WindowStore(int(str(capacity)))
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f'capacity "{capacity}" is invalid: {error}') from error


class _Pickled:
    """Pickles what is counted, as ``memory://`` does."""

    _store: WindowStore

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_store"] = (self._store.capacity, self._store.dump())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        capacity, dumped = state.pop("_store")
        self.__dict__.update(state)
        self._store = WindowStore(capacity)
        self._store.load(dumped, time.time())


class SpillgateStorage(
    _Pickled,
    limits.storage.Storage,
    limits.storage.MovingWindowSupport,
    limits.storage.SlidingWindowCounterSupport,
    TimestampedSlidingWindow,
):
    """``spillgate://``, for all strategies of ``limits.strategies``."""

    STORAGE_SCHEME = ["spillgate"]

    def __init__(
        self, uri: str | None = None, wrap_exceptions: bool = False, **options: float | str | bool
    ) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self._store = _store(uri, options)

    @property
    def base_exceptions(self) -> type[Exception] | tuple[type[Exception], ...]:
        return (ValueError, OverflowError)

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        return self._store.incr(key, expiry, amount, time.time())

    def get(self, key: str) -> int:
        return self._store.get(key, time.time())

    def get_expiry(self, key: str) -> float:
        return self._store.get_expiry(key, time.time())

    def check(self) -> bool:
        return True

    def reset(self) -> int | None:
        return self._store.reset()

    def clear(self, key: str) -> None:
        self._store.clear(key)

    def acquire_entry(self, key: str, limit: int, expiry: float, amount: int = 1) -> bool:
        return self._store.acquire_entry(key, limit, expiry, amount, time.time())

    def get_moving_window(self, key: str, limit: int, expiry: float) -> tuple[float, int]:
        return self._store.get_moving_window(key, expiry, time.time())

    def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: float, amount: int = 1
    ) -> bool:
        return self._store.acquire_sliding_window_entry(key, limit, expiry, amount, time.time())

    def get_sliding_window(self, key: str, expiry: float) -> tuple[int, float, int, float]:
        return self._store.get_sliding_window(key, expiry, time.time())

    def clear_sliding_window(self, key: str, expiry: float) -> None:
        self._store.clear_sliding_window(key, expiry)


class AsyncSpillgateStorage(
    _Pickled,
    limits.aio.storage.Storage,
    limits.aio.storage.MovingWindowSupport,
    limits.aio.storage.SlidingWindowCounterSupport,
    TimestampedSlidingWindow,
):
    """``async+spillgate://``, for all strategies of ``limits.aio.strategies``."""

    STORAGE_SCHEME = ["async+spillgate"]

    def __init__(
        self, uri: str | None = None, wrap_exceptions: bool = False, **options: float | str | bool
    ) -> None:
        super().__init__(uri, wrap_exceptions=wrap_exceptions)
        self._store = _store(uri, options)

    @property
    def base_exceptions(self) -> type[Exception] | tuple[type[Exception], ...]:
        return (ValueError, OverflowError)

    async def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        return self._store.incr(key, expiry, amount, time.time())

    async def get(self, key: str) -> int:
        return self._store.get(key, time.time())

    async def get_expiry(self, key: str) -> float:
        return self._store.get_expiry(key, time.time())

    async def check(self) -> bool:
        return True

    async def reset(self) -> int | None:
        return self._store.reset()

    async def clear(self, key: str) -> None:
        self._store.clear(key)

    async def acquire_entry(self, key: str, limit: int, expiry: float, amount: int = 1) -> bool:
        return self._store.acquire_entry(key, limit, expiry, amount, time.time())

    async def get_moving_window(self, key: str, limit: int, expiry: float) -> tuple[float, int]:
        return self._store.get_moving_window(key, expiry, time.time())

    async def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: float, amount: int = 1
    ) -> bool:
        return self._store.acquire_sliding_window_entry(key, limit, expiry, amount, time.time())

    async def get_sliding_window(self, key: str, expiry: float) -> tuple[int, float, int, float]:
        return self._store.get_sliding_window(key, expiry, time.time())

    async def clear_sliding_window(self, key: str, expiry: float) -> None:
        self._store.clear_sliding_window(key, expiry)
