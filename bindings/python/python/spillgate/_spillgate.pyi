"""The native module: limiters, policies and gates. Import its names from `spillgate`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address
from os import PathLike
from types import TracebackType
from typing import Any, Literal, final

from spillgate.types import Algorithm, Answer, Headers, Key, Seconds
from typing_extensions import Self

__all__ = [
    "AllDecision",
    "Counts",
    "Decision",
    "Gate",
    "InvalidRequest",
    "LimitState",
    "Limiter",
    "ManualClock",
    "Outcome",
    "Policy",
    "Reservation",
    "Settled",
    "SpillgateError",
    "WindowStore",
    "__version__",
    "check_all",
]

__version__: str

class SpillgateError(ValueError):
    """A quota, a policy, a request or a setting is invalid. The text says what would be right."""

class InvalidRequest(SpillgateError):
    """A request has a method, a path, a header, a peer or a caller that is invalid."""

@final
class ManualClock:
    """A clock that the test moves."""

    def __new__(cls, start: float | None = None) -> Self: ...
    def advance(self, by: Seconds) -> None: ...
    def advance_ns(self, by: int) -> None: ...
    def set_ns(self, now: int) -> None: ...
    def now(self) -> float: ...
    def now_ns(self) -> int: ...

@final
class Decision:
    """What a check has decided. True if the call may proceed."""

    @property
    def allowed(self) -> bool: ...
    @property
    def denied(self) -> bool: ...
    @property
    def never(self) -> bool:
        """Denied, and waiting does not help."""
    @property
    def table_full(self) -> bool: ...
    @property
    def cost(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def remaining(self) -> int: ...
    @property
    def owed(self) -> int:
        """What is spent, rounded up; more than `limit` in debt."""
    @property
    def retry_after(self) -> float | None:
        """Seconds until the same call would be allowed: 0 if it was, None if never."""
    @property
    def retry_after_ns(self) -> int | None: ...
    @property
    def retry_after_secs(self) -> int | None:
        """Rounded up, as a `Retry-After` header has it."""
    @property
    def reset_after(self) -> float | None:
        """Seconds until the whole limit is available; None if it never refills."""
    @property
    def reset_after_ns(self) -> int | None: ...
    @property
    def idle_after_ns(self) -> int | None:
        """`reset_after` to the nanosecond; that one is as the quota states it."""
    @property
    def window(self) -> float | None: ...
    @property
    def wait(self) -> float:
        """Seconds that an allowed call should wait before it proceeds: 0 unless a shaper decided."""
    @property
    def wait_ns(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class Settled:
    """The result of a debit or a settlement."""

    @property
    def left(self) -> Decision: ...
    @property
    def uncharged(self) -> int:
        """What was not debited, since the debt would have exceeded `max_debt`."""

@final
class Counts:
    """Decisions of a limiter since it was built."""

    @property
    def allowed(self) -> int: ...
    @property
    def denied(self) -> int: ...
    @property
    def evictions(self) -> int: ...
    @property
    def kept_spends(self) -> int: ...

@final
class Reservation:
    """A cost spent in advance. False if it was denied; entering it then raises `RateLimited`.

    As a context manager: if the block raises, what has not been refilled since is returned.
    """

    @property
    def decision(self) -> Decision: ...
    @property
    def reserved(self) -> int: ...
    @property
    def open(self) -> bool:
        """Allowed, and neither settled nor cancelled yet."""
    def settle(self, actual: int) -> Settled: ...
    def cancel(self) -> bool: ...
    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Limiter:
    """A rate limiter: one quota, any number of callers, each identified by a key."""

    def __new__(
        cls,
        quota: str,
        *,
        algorithm: Algorithm = "token-bucket",
        start: Literal["full", "empty"] = "full",
        capacity: int = 100_000,
        when_full: Literal["evict", "protect", "deny"] = "evict",
        max_debt: int | None = None,
        tiers: Mapping[str, str] | None = None,
        tier_of: Callable[[Any], str | None] | None = None,
        clock: ManualClock | None = None,
        max_waiting: int = 65_536,
    ) -> Self: ...
    def check(self, key: Key, cost: int = 1) -> Decision:
        """Spends `cost` if all of it is available now."""
    def allow(self, key: Key, cost: int = 1) -> bool:
        """`check` without a `Decision`: the fastest call."""
    def peek(self, key: Key, cost: int = 1) -> Decision: ...
    def debit(self, key: Key, amount: int = 1) -> Settled:
        """Spends unconditionally, into debt up to `max_debt`."""
    def refund(self, key: Key, amount: int = 1) -> None: ...
    def reserve(self, key: Key, cost: int = 1) -> Reservation: ...
    def reset(self, key: Key) -> None: ...
    def check_many(self, keys: Iterable[Key]) -> list[Decision]:
        """One check of cost 1 per key, in order. A wrong key raises before anything is spent."""
    def allow_many(self, keys: Iterable[Key]) -> list[bool]: ...
    async def wait(self, key: Key, cost: int = 1, timeout: Seconds | None = None) -> Decision:
        """Waits until `cost` is allowed, first come, first served per key, and spends it.

        Raises `RateLimited` as soon as the wait would exceed the timeout. Cancelled, it spends
        nothing.
        """
    def wait_blocking(
        self, key: Key, cost: int = 1, timeout: Seconds | None = None
    ) -> Decision:
        """`wait` for threads."""
    @property
    def waiting(self) -> int:
        """How many calls are waiting."""
    def set_override(
        self,
        key: Key,
        quota: str,
        *,
        until: float | datetime | None = None,
        ttl: Seconds | None = None,
    ) -> None: ...
    def remove_override(self, key: Key) -> str | None: ...
    def override_until(self, key: Key) -> float | None: ...
    def quota_of(self, key: Key) -> str: ...
    @property
    def quota(self) -> str: ...
    def set_quota(self, quota: str) -> None: ...
    def set_tier_quota(self, tier: str, quota: str) -> None: ...
    def active_callers(self) -> int: ...
    def purge_idle(self) -> int: ...
    def counts(self) -> Counts: ...

@final
class AllDecision:
    """The result of `check_all`. True if every limiter allowed the call."""

    @property
    def allowed(self) -> bool: ...
    @property
    def decisions(self) -> list[Decision]: ...
    @property
    def retry_after(self) -> float | None: ...
    @property
    def retry_after_secs(self) -> int | None: ...
    @property
    def wait(self) -> float: ...
    def __bool__(self) -> bool: ...

def check_all(
    spends: Iterable[tuple[Limiter, Key] | tuple[Limiter, Key, int]], /
) -> AllDecision:
    """Spends on several limiters, or on none if one denies."""

@final
class Policy:
    """A policy file that has been checked."""

    def __new__(
        cls,
        toml: str,
        *,
        folder: str | PathLike[str] | None = None,
        names_callers: bool = False,
    ) -> Self: ...
    @staticmethod
    def load(path: str | PathLike[str], *, names_callers: bool = False) -> Policy: ...
    @property
    def limits(self) -> list[str]: ...

@final
class LimitState:
    """One limit that a request met."""

    @property
    def name(self) -> str: ...
    @property
    def shadow(self) -> bool: ...
    @property
    def decision(self) -> Decision: ...

@final
class Outcome:
    """What a gate has decided about a request. True if it may go ahead.

    It holds the permits of concurrency limits until `release`, the end of a `with` block, or until
    it is dropped.
    """

    @property
    def allowed(self) -> bool: ...
    @property
    def answer(self) -> Answer: ...
    @property
    def status(self) -> int:
        """200, or that of the refusal: 429, 403, 400 or 503."""
    @property
    def headers(self) -> list[tuple[str, str]]:
        """For the response, refused or not. Names are in lower case."""
    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        """`headers` as ASGI has them."""
    @property
    def body(self) -> bytes:
        """The problem document of a refusal (RFC 9457); empty if the request may go ahead."""
    @property
    def caller(self) -> str | None:
        """Who was refused, secrets as fingerprints; None if the request may go ahead."""
    @property
    def limits(self) -> list[LimitState]: ...
    @property
    def denied_by(self) -> str | None: ...
    @property
    def retry_after(self) -> float | None: ...
    @property
    def wait(self) -> float:
        """Seconds to wait before the request goes ahead: 0 unless a shaper decided."""
    @property
    def permits(self) -> int:
        """How many concurrency limits something is held of."""
    def start(self) -> None:
        """Call it after `wait`: adaptive limits measure latency from here."""
    def cancel(self) -> None:
        """Takes back a request that did not go ahead, since its client did not `wait`."""
    def settle(self, status: int, headers: Headers | None = None) -> None:
        """Corrects the cost by the response, once. Blocks if the store is in Redis."""
    async def settle_async(self, status: int, headers: Headers | None = None) -> None: ...
    def fail(self) -> None:
        """The service failed to answer at all, once."""
    def release(self) -> None:
        """Gives permits back. Safe to call twice, and from any thread."""
    def __bool__(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Gate:
    """A policy and what callers have spent under it, in this process or in Redis."""

    def __new__(
        cls,
        policy: Policy | str,
        *,
        clock: ManualClock | None = None,
        redis: str | None = None,
        prefix: str = "spillgate:",
        secret: str | None = None,
        nodes: int | None = None,
        on_store_error: Literal["refuse", "allow"] = "refuse",
        headers: Iterable[Literal["rate-limit", "x-rate-limit", "retry-after-ms"]] | None = None,
    ) -> Self: ...
    @property
    def in_process(self) -> bool:
        """True if no decision waits: the store is not in Redis."""
    def decide(
        self,
        *,
        method: str = "GET",
        path: str | bytes | None = None,
        headers: Headers | None = None,
        peer: str | IPv4Address | IPv6Address | None = None,
        host: str | None = None,
        caller: str | None = None,
    ) -> Outcome:
        """Decides a request. `path` is as it was sent; a query is ignored."""
    async def decide_async(
        self,
        *,
        method: str = "GET",
        path: str | bytes | None = None,
        headers: Headers | None = None,
        peer: str | IPv4Address | IPv6Address | None = None,
        host: str | None = None,
        caller: str | None = None,
    ) -> Outcome: ...
    def check_limit(self, limit: str, values: Sequence[str] = ..., cost: int = 1) -> Outcome:
        """Spends under a limit by name, one value for each part of its `per`."""
    async def check_limit_async(
        self, limit: str, values: Sequence[str] = ..., cost: int = 1
    ) -> Outcome: ...
    def peek_limit(self, limit: str, values: Sequence[str] = ..., cost: int = 1) -> Decision: ...
    def reset_limit(self, limit: str, values: Sequence[str] = ...) -> None: ...
    def replace(self, policy: Policy | str) -> None:
        """Puts another policy in force; what was spent stays spent where limits are the same."""
    def limits(self) -> list[str]: ...
    def close(self) -> None:
        """Gives leases back to Redis and ends the connection. Safe to call twice."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class WindowStore:
    """Counts by key for the storages of `spillgate.limits`. Times are in seconds since the epoch."""

    def __new__(cls, capacity: int) -> Self: ...
    @property
    def capacity(self) -> int: ...
    def incr(self, key: str, expiry: float, amount: int, now: float) -> int: ...
    def get(self, key: str, now: float) -> int: ...
    def get_expiry(self, key: str, now: float) -> float: ...
    def acquire_entry(
        self, key: str, limit: int, expiry: float, amount: int, now: float
    ) -> bool: ...
    def get_moving_window(self, key: str, expiry: float, now: float) -> tuple[float, int]: ...
    def acquire_sliding_window_entry(
        self, key: str, limit: int, expiry: float, amount: int, now: float
    ) -> bool: ...
    def get_sliding_window(
        self, key: str, expiry: float, now: float
    ) -> tuple[int, float, int, float]: ...
    def clear(self, key: str) -> None: ...
    def clear_sliding_window(self, key: str, expiry: float) -> None: ...
    def reset(self) -> int: ...
    def dump(self) -> list[tuple[int, bytes, float, list[tuple[float, int]]]]: ...
    def load(
        self, dumped: list[tuple[int, bytes, float, list[tuple[float, int]]]], now: float
    ) -> None: ...
    def __len__(self) -> int: ...
