"""A decorator that limits the calls of a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ._spillgate import Limiter
from .errors import RateLimited

if TYPE_CHECKING:
    from .types import Key, Seconds

__all__ = ["limit"]

P = ParamSpec("P")
R = TypeVar("R")


def limit(
    limiter: Limiter | str,
    *,
    key: Callable[..., Key] | Key | None = None,
    cost: Callable[..., int] | int = 1,
    wait: bool = False,
    timeout: Seconds | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Limits the calls of a function, which may be asynchronous.

    `limiter` is a `Limiter`, which several functions may share, or the text of a quota. `key` and
    `cost` are values, or functions of the call's arguments; without `key` all calls of the function
    are counted together. A denied call raises `RateLimited`. With `wait`, a call waits for its turn,
    and raises if that would take longer than `timeout`.

    If `key` or `cost` raise, nothing is spent, and the function is not called.
    """
    if timeout is not None and not wait:
        raise TypeError("timeout belongs to wait=True")
    shared = Limiter(limiter) if isinstance(limiter, str) else limiter

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = f"{function.__module__}.{getattr(function, '__qualname__', function)}"

        def spend(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Key, int]:
            counted = key(*args, **kwargs) if callable(key) else key
            price = cost(*args, **kwargs) if callable(cost) else cost
            return own if counted is None else counted, price

        def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            decision = shared.check(*spend(args, kwargs))
            if not decision.allowed:
                raise RateLimited(decision)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                if wait:
                    await shared.wait(*spend(args, kwargs), timeout)
                else:
                    check(args, kwargs)
                return await function(*args, **kwargs)

            return cast(Callable[P, R], call_async)

        if wait and inspect.isasyncgenfunction(function):
            raise TypeError("an asynchronous generator cannot wait when it is called")

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if wait:
                shared.wait_blocking(*spend(args, kwargs), timeout)
            else:
                check(args, kwargs)
            return function(*args, **kwargs)

        return call

    return decorate
