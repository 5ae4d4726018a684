"""The decorator: what is counted, what is raised, and what waits."""

import asyncio
import subprocess
import sys
import threading

import pytest

from spillgate import Limiter, ManualClock, RateLimited
from spillgate.decorators import limit


@pytest.fixture
def clock():
    return ManualClock()


def test_calls_beyond_the_quota_raise(clock):
    @limit(Limiter("2/min", clock=clock))
    def greet(name):
        """Greets."""
        return f"hello {name}"

    assert [greet("ann"), greet("bob")] == ["hello ann", "hello bob"]
    with pytest.raises(RateLimited) as denied:
        greet("cat")
    assert denied.value.decision.retry_after == 30
    assert str(denied.value) == "rate limit exceeded; retry after 30.000 s"
    clock.advance(30)
    assert greet("cat") == "hello cat"
    assert greet.__name__ == "greet" and greet.__doc__ == "Greets."


def test_a_key_and_a_cost_may_depend_on_the_arguments():
    calls = []

    @limit("10/h", key=lambda user, size=1: user, cost=lambda user, size=1: size)
    def upload(user, size=1):
        calls.append((user, size))

    upload("ann", size=10)
    upload("bob", 4)
    upload("bob")
    with pytest.raises(RateLimited):
        upload("ann")
    with pytest.raises(RateLimited) as never:
        upload("cat", 11)
    assert never.value.decision.never
    assert str(never.value) == "rate limit exceeded; waiting does not help"
    assert calls == [("ann", 10), ("bob", 4), ("bob", 1)]


def test_coroutines_are_limited_when_they_run(clock):
    @limit(Limiter("1/min", clock=clock), key=lambda user: user)
    async def fetch(user):
        return user

    async def main():
        unused = fetch("ann")
        assert await fetch("ann") == "ann" and await fetch("bob") == "bob"
        with pytest.raises(RateLimited):
            await unused

    assert asyncio.iscoroutinefunction(fetch)
    asyncio.run(main())


def test_functions_that_share_a_limiter_share_keys_only_if_they_say_so():
    limiter = Limiter("1/h")
    own = [limit(limiter)(function) for function in (lambda: 1, lambda: 2)]
    other = limit(limiter)(len)
    assert own[0]() == 1 and other("ab") == 2
    shared = [limit(limiter, key="shared")(function) for function in (min, max)]
    assert shared[0](1, 2) == 1
    with pytest.raises(RateLimited):
        shared[1](1, 2)


def test_methods_see_self():
    class Account:
        def __init__(self, name):
            self.name = name

        @limit("1/h", key=lambda self: self.name)
        def pay(self):
            return self.name

    assert Account("ann").pay() == "ann" and Account("bob").pay() == "bob"
    with pytest.raises(RateLimited):
        Account("ann").pay()


def test_an_error_in_a_key_function_reaches_the_caller_and_spends_nothing():
    calls = []

    @limit("1/h", key=lambda user: user["name"])
    def act(user):
        calls.append(user)

    for wrong, error in [({}, KeyError), ({"name": []}, TypeError), ({"name": 1.5}, TypeError)]:
        with pytest.raises(error):
            act(wrong)
    act({"name": "ann"})
    assert calls == [{"name": "ann"}]

    async def main():
        with pytest.raises(KeyError):
            await limit("1/h", key=lambda user: user["name"])(asyncio.sleep)({})

    asyncio.run(main())


def test_waiting_calls_pass_one_after_the_other():
    @limit("1000/s burst 1", wait=True)
    def call():
        return 1

    @limit("1000/s burst 1", wait=True)
    async def call_async():
        return 1

    async def main():
        return await asyncio.gather(*(call_async() for _ in range(20)))

    assert sum(call() for _ in range(20)) == 20 and sum(asyncio.run(main())) == 20


def test_a_wait_beyond_its_timeout_raises_at_once():
    @limit("1/h", wait=True, timeout=5)
    def call():
        return 1

    @limit("1/h", wait=True, timeout=5)
    async def call_async():
        return 1

    assert call() == asyncio.run(call_async()) == 1
    with pytest.raises(RateLimited):
        call()
    with pytest.raises(RateLimited):
        asyncio.run(call_async())


def test_generators_are_limited_when_they_are_called():
    @limit("1/h")
    def numbers():
        yield 1

    @limit("1/h")
    async def numbers_async():
        yield 1

    assert list(numbers()) == [1]
    with pytest.raises(RateLimited):
        numbers()
    numbers_async()
    with pytest.raises(RateLimited):
        numbers_async()
    with pytest.raises(TypeError, match="asynchronous generator"):
        limit("1/h", wait=True)(numbers_async.__wrapped__)


def test_threads_together_get_exactly_the_quota():
    passed = []
    call = limit("100/h")(lambda: passed.append(1))

    def run():
        for _ in range(10):
            try:
                call()
            except RateLimited:
                pass

    threads = [threading.Thread(target=run) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 100


def test_wrong_arguments_say_what_would_be_right():
    with pytest.raises(ValueError, match="often"):
        limit("often")
    with pytest.raises(TypeError, match="timeout belongs to wait=True"):
        limit("1/s", timeout=5)


EXITS = {
    "a thread that waits": """
import threading
from spillgate.decorators import limit

@limit("1/h", wait=True)
def call(): pass

call()
for _ in range(4):
    threading.Thread(target=call, daemon=True).start()
""",
    "a task that waits": """
import asyncio
from spillgate.decorators import limit

@limit("1/h", wait=True)
async def call(): pass

async def main():
    await call()
    asyncio.ensure_future(call())
    await asyncio.sleep(0)

asyncio.run(main())
""",
    "a loop that was never closed": """
import asyncio
from spillgate.decorators import limit

@limit("1/h", wait=True)
async def call(): pass

loop = asyncio.new_event_loop()
loop.run_until_complete(call())
task = loop.create_task(call())
loop.run_until_complete(asyncio.sleep(0))
""",
}


@pytest.mark.parametrize("program", EXITS.values(), ids=EXITS.keys())
def test_the_interpreter_ends_in_spite_of(program):
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "panicked" not in run.stderr and "Fatal" not in run.stderr
