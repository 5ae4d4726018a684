"""A pytest plugin that runs the tests of `limits` against `spillgate://`, in simulated time.

Those tests wait for windows to pass. Here a sleep moves the clock and returns at once, so that they take
a second and do not depend on the machine.
"""

import asyncio
import threading
import time

import limits.aio.storage
import limits.storage

import spillgate.limits

# What the tests construct directly, to pickle it and to know its class.
limits.storage.MemoryStorage = spillgate.limits.SpillgateStorage
limits.aio.storage.MemoryStorage = spillgate.limits.AsyncSpillgateStorage

# Where in a window a test begins is the same in every run: some of these tests depend on it.
_now = 1_700_000_000.0
_lock = threading.Lock()
_real_sleep = asyncio.sleep


def _time():
    return _now


def _sleep(seconds):
    global _now
    with _lock:
        _now += seconds


async def _sleep_async(seconds, result=None):
    _sleep(seconds)
    await _real_sleep(0)
    return result


time.time = _time
time.sleep = _sleep
asyncio.sleep = _sleep_async
