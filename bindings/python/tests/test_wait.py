"""Waiting: first come, first served, exact, bounded, and nothing is spent by whoever leaves."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from spillgate import Limiter, ManualClock, RateLimited


async def settle():
    """Lets every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_many_waiters_pass_first_come_first_served_and_exactly_in_time():
    async def main():
        clock = ManualClock()
        limiter = Limiter("10/s burst 3", clock=clock)
        passed = []

        async def wait(index):
            decision = await limiter.wait("ann")
            assert decision.allowed
            passed.append((index, clock.now_ns()))

        start = clock.now_ns()
        tasks = [asyncio.create_task(wait(index)) for index in range(200)]
        while len(passed) < 200:
            await settle()
            clock.advance_ns(10_000_000)
        await asyncio.gather(*tasks)
        tenth = 100_000_000
        assert passed == [(index, start + max(0, index - 2) * tenth) for index in range(200)]
        assert (limiter.counts().allowed, limiter.counts().denied) == (200, 0)
        assert limiter.waiting == 0

    asyncio.run(main())


def test_callers_do_not_wait_for_one_another():
    async def main():
        clock = ManualClock()
        limiter = Limiter("1/s", clock=clock)
        await limiter.wait("ann")
        waiting = asyncio.create_task(limiter.wait("ann"))
        await settle()
        assert await limiter.wait("bob")
        assert limiter.waiting == 1
        clock.advance(1)
        assert await waiting

    asyncio.run(main())


def test_limiters_with_one_clock_wake_all_of_their_waiters():
    async def main():
        clock = ManualClock()
        limiters = [Limiter("1/s", clock=clock) for _ in range(5)]
        for limiter in limiters:
            limiter.check("ann")
        tasks = [asyncio.create_task(limiter.wait("ann")) for limiter in limiters]
        await settle()
        clock.advance(1)
        await settle()
        assert all(task.done() and task.result() for task in tasks)

    asyncio.run(main())


def test_a_wait_that_would_exceed_its_timeout_fails_at_once():
    async def main():
        clock = ManualClock()
        limiter = Limiter("1/min", clock=clock)
        await limiter.wait("ann", timeout=0)
        with pytest.raises(RateLimited) as raised:
            await limiter.wait("ann", timeout=59.9)
        assert raised.value.decision.retry_after_ns == 60 * 10**9
        with pytest.raises(RateLimited, match="does not help") as raised:
            await limiter.wait("ann", 2)
        assert raised.value.decision.never
        assert (limiter.counts().allowed, limiter.counts().denied) == (1, 2)
        assert limiter.waiting == 0

    asyncio.run(main())


def test_a_timeout_counts_in_the_queue_too():
    async def main():
        clock = ManualClock()
        limiter = Limiter("1/min", clock=clock)
        await limiter.wait("ann")
        first = asyncio.create_task(limiter.wait("ann"))
        second = asyncio.create_task(limiter.wait("ann", timeout=1))
        await settle()
        clock.advance(1)
        await settle()
        assert second.done() and isinstance(second.exception(), RateLimited)
        assert not first.done()
        clock.advance(59)
        assert await first

    asyncio.run(main())


def test_whoever_is_cancelled_spends_nothing_and_lets_the_next_pass():
    async def main():
        clock = ManualClock()
        limiter = Limiter("1/s", clock=clock)
        await limiter.wait("ann")
        tasks = [asyncio.create_task(limiter.wait("ann")) for _ in range(3)]
        await settle()
        tasks[0].cancel()
        tasks[1].cancel()
        await settle()
        assert limiter.waiting == 1
        clock.advance(1)
        assert await tasks[2]
        assert limiter.peek("ann").owed == 1
        assert limiter.waiting == 0

    asyncio.run(main())


def test_a_coroutine_that_is_never_awaited_joins_no_queue():
    limiter = Limiter("1/s", clock=ManualClock())
    limiter.wait("ann").close()
    assert (limiter.waiting, limiter.active_callers()) == (0, 0)


def test_a_shaper_makes_calls_wait_for_their_slot_and_takes_back_the_last():
    async def main():
        clock = ManualClock()
        limiter = Limiter("10/s burst 5", algorithm="leaky-shaper", clock=clock)
        await limiter.wait("ann")
        second = asyncio.create_task(limiter.wait("ann"))
        await settle()
        assert not second.done() and limiter.peek("ann", 0).owed == 2
        second.cancel()
        await settle()
        assert limiter.peek("ann", 0).owed == 1
        third = asyncio.create_task(limiter.wait("ann"))
        await settle()
        clock.advance_ns(99_999_999)
        await settle()
        assert not third.done()
        clock.advance_ns(1)
        assert await third
        with pytest.raises(RateLimited):
            await limiter.wait("ann", timeout=0.05)

    asyncio.run(main())


def test_the_number_of_waiters_is_bounded():
    async def main():
        clock = ManualClock()
        limiter = Limiter("1/s", clock=clock, max_waiting=2)
        await limiter.wait("ann")
        tasks = [asyncio.create_task(limiter.wait(key)) for key in ("ann", "ann")]
        await settle()
        with pytest.raises(RateLimited):
            await limiter.wait("bob")
        for _ in tasks:
            clock.advance(1)
            await settle()
        assert [bool(await task) for task in tasks] == [True, True]
        assert await limiter.wait("bob")

    asyncio.run(main())


def test_tasks_and_threads_wait_in_one_queue():
    clock = ManualClock()
    limiter = Limiter("1/s", clock=clock)
    limiter.check("ann")
    passed = []

    def thread():
        limiter.wait_blocking("ann")
        passed.append("thread")

    async def main():
        first = asyncio.create_task(limiter.wait("ann"))
        await settle()
        worker = threading.Thread(target=thread)
        worker.start()
        while limiter.waiting < 2:
            await asyncio.sleep(0.001)
        third = asyncio.create_task(limiter.wait("ann"))
        await settle()
        clock.advance(1)
        await first
        passed.append("first")
        clock.advance(1)
        while len(passed) < 2:
            await asyncio.sleep(0.001)
        clock.advance(1)
        await third
        passed.append("third")
        worker.join()

    asyncio.run(main())
    assert passed == ["first", "thread", "third"]


def test_two_event_loops_share_a_queue():
    clock = ManualClock()
    limiter = Limiter("1/s", clock=clock)
    limiter.check("ann")
    workers = [threading.Thread(target=lambda: asyncio.run(limiter.wait("ann"))) for _ in range(2)]
    for worker in workers:
        worker.start()
    while limiter.waiting < 2:
        time.sleep(0.001)
    while any(worker.is_alive() for worker in workers):
        clock.advance(1)
        time.sleep(0.001)
    assert limiter.counts().allowed == 3


def test_the_system_clock_is_waited_for():
    async def main():
        limiter = Limiter("200/s burst 1")
        for _ in range(4):
            assert await limiter.wait("ann", timeout=60)
        assert limiter.counts().allowed == 4

    asyncio.run(main())
    limiter = Limiter("200/s burst 1")
    assert all(limiter.wait_blocking("ann", timeout=60) for _ in range(4))


def test_a_thread_that_waits_does_not_hold_up_others():
    clock = ManualClock()
    limiter = Limiter("1/s", clock=clock)
    limiter.check("ann")
    worker = threading.Thread(target=limiter.wait_blocking, args=["ann"])
    worker.start()
    while limiter.waiting < 1:
        time.sleep(0.001)
    clock.advance(1)
    worker.join(60)
    assert not worker.is_alive()


@pytest.fixture
def interruptible():
    """Python's own handler: a run in the background of a shell starts with signals ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_control_c_ends_a_blocking_wait(interruptible):
    limiter = Limiter("1/day")
    limiter.check("ann")

    def interrupt():
        while limiter.waiting < 1:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    worker = threading.Thread(target=interrupt)
    worker.start()
    with pytest.raises(KeyboardInterrupt):
        limiter.wait_blocking("ann")
    worker.join()
    assert limiter.waiting == 0


SHUTDOWNS = {
    "daemon threads": """
import threading
from spillgate import Limiter
limiter = Limiter("1/day")
limiter.check("ann")
for _ in range(8):
    threading.Thread(target=limiter.wait_blocking, args=["ann"], daemon=True).start()
while limiter.waiting < 8:
    pass
""",
    "a loop that nobody closed": """
import asyncio
from spillgate import Limiter
limiter = Limiter("1/day")
limiter.check("ann")
loop = asyncio.new_event_loop()
task = loop.create_task(limiter.wait("ann"))
loop.run_until_complete(asyncio.sleep(0))
assert limiter.waiting == 1
""",
    "a loop that ends": """
import asyncio
from spillgate import Limiter
limiter = Limiter("1/day")
async def main():
    limiter.check("ann")
    asyncio.create_task(limiter.wait("ann"))
    await asyncio.sleep(0)
asyncio.run(main())
assert limiter.waiting == 0
""",
    "a clock that outlives its loop": """
import asyncio
from spillgate import Limiter, ManualClock
clock = ManualClock()
limiter = Limiter("1/s", clock=clock)
limiter.check("ann")
loop = asyncio.new_event_loop()
task = loop.create_task(limiter.wait("ann"))
loop.run_until_complete(asyncio.sleep(0))
loop.close()
clock.advance(1)
""",
}


@pytest.mark.parametrize("script", SHUTDOWNS.values(), ids=SHUTDOWNS.keys())
def test_an_interpreter_ends_while_somebody_waits(script):
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    assert "Fatal" not in ended.stderr and "panic" not in ended.stderr, ended.stderr
