"""The coroutines of the native module."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from spillgate._spillgate import Decision


async def wait(waiter: Any) -> Decision:
    """Takes the steps of a call that waits, until it is decided."""
    loop = asyncio.get_running_loop()
    try:
        while True:
            woken = loop.create_future()
            wake = partial(_done, woken)
            step = waiter.step(partial(loop.call_soon_threadsafe, wake))
            if isinstance(step, Decision):
                return step
            timer = None if step is None else loop.call_later(step, wake)
            try:
                await woken
            finally:
                if timer is not None:
                    timer.cancel()
    finally:
        waiter.leave()


async def result(start: Any) -> Any:
    """What a native call returns, now or later."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    at_once = start(partial(loop.call_soon_threadsafe, _done, future))
    return at_once if at_once is not None else await future


def _done(future: asyncio.Future[Any], value: Any = None, error: BaseException | None = None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)
