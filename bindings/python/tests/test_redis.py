"""Gates that share what callers have spent through a real Redis."""

import asyncio
import os
import socket
import subprocess
import sys
import threading

import pytest
from redis_server import redis_server
from test_fork import in_child

from spillgate import Gate, SpillgateError

POLICY = '[[limit]]\nname = "api"\nquota = "10/day"\noutage = "closed"\n'
OPEN = POLICY.replace("closed", "open")
PEER = "203.0.113.7"


@pytest.fixture(scope="module")
def redis():
    with redis_server() as (url, _end):
        yield url


def admitted(gate, calls):
    return sum(gate.decide(peer=PEER).allowed for _ in range(calls))


def test_two_gates_share_a_limit(redis):
    with Gate(POLICY, redis=redis, prefix="two:") as one, Gate(POLICY, redis=redis, prefix="two:") as other:
        assert not one.in_process
        assert admitted(one, 7) == 7
        assert admitted(other, 7) == 3
        refused = one.decide(peer=PEER)
        assert (refused.status, refused.answer, refused.denied_by) == (429, "denied", "api")
        assert other.peek_limit("api", [PEER]).denied
        other.reset_limit("api", [PEER])
        assert admitted(other, 1) == 1, "others remember a denial for a second"
        with pytest.raises(SpillgateError, match="did you mean"):
            one.check_limit("apu", [PEER])


def test_tasks_and_threads_are_as_exact(redis):
    gate = Gate(POLICY, redis=redis, prefix="exact:", secret="the same on every node")
    allowed = []

    async def main():
        outcomes = await asyncio.gather(*(gate.decide_async(peer=PEER) for _ in range(20)))
        allowed.extend(outcome.allowed for outcome in outcomes)

    threads = [threading.Thread(target=asyncio.run, args=[main()]) for _ in range(4)]
    threads += [
        threading.Thread(target=lambda: allowed.append(gate.decide(peer=PEER).allowed)) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    gate.close()
    assert (sum(allowed), len(allowed)) == (10, 100)


def test_a_gate_that_was_closed_starts_again(redis):
    gate = Gate(POLICY, redis=redis, prefix="closed:")
    gate.close()
    assert admitted(gate, 4) == 4
    gate.close()
    gate.close()
    assert admitted(gate, 10) == 6
    gate.close()


def test_permits_and_costs_are_shared(redis):
    policy = (
        '[[limit]]\nname = "jobs"\nconcurrent = 1\nper = ["ip"]\n'
        '[[limit]]\nname = "tokens"\nquota = "100/day"\nper = ["ip"]\nsettle = { header = "x-cost" }\n'
    )
    with Gate(policy, redis=redis, prefix="permits:") as gate:
        with gate.decide(peer=PEER) as held:
            assert held.permits == 1
            assert gate.decide(peer=PEER).denied_by == "jobs"
            held.settle(200, {"x-cost": "30"})
        assert gate.peek_limit("tokens", [PEER]).remaining == 70
        other = gate.decide(peer=PEER)
        asyncio.run(other.settle_async(200, {"x-cost": "20"}))
        assert other.limits[1].decision.remaining == 50
        other.release()
        assert gate.decide(peer=PEER)


def test_a_new_policy_is_in_force_in_the_child_of_a_fork_too(redis):
    gate = Gate(POLICY, redis=redis, prefix="replaced:")
    assert admitted(gate, 3) == 3
    gate.replace(POLICY.replace("10/day", "5/day"))

    def child():
        assert admitted(gate, 5) == 2
        gate.close()

    in_child(child)
    assert admitted(gate, 1) == 0
    gate.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_a_fork_starts_its_own_connection(redis):
    policy = POLICY + 'settle = { header = "x-cost" }\n[[limit]]\nname = "jobs"\nconcurrent = 500\nper = ["ip"]\n'
    gate = Gate(policy, redis=redis, prefix="fork:")
    held = gate.decide(peer=PEER)
    assert held.permits == 1
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            gate.decide(peer="203.0.113.8")

    worker = threading.Thread(target=busy)
    worker.start()

    def child():
        outcome = gate.decide(peer=PEER)
        assert outcome, (outcome.denied_by, outcome.limits)
        # Before the gate is closed, and by a node with a name of its own.
        del outcome
        # Neither what the parent holds nor its connection is touched.
        held.settle(200, {"x-cost": "5"})
        asyncio.run(held.settle_async(200, {"x-cost": "5"}))
        held.fail()
        held.cancel()
        held.release()
        gate.close()

    try:
        for _ in range(5):
            in_child(child)
    finally:
        stop.set()
        worker.join()
    assert held.permits == 1
    held.settle(200, {"x-cost": "2"})
    held.release()
    assert admitted(gate, 10) == 3
    gate.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_a_fork_is_not_held_up_by_a_gate_that_was_starting():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        gate = Gate(POLICY, redis=f"redis://127.0.0.1:{silent.getsockname()[1]}")
        first = threading.Thread(target=lambda: gate.decide(peer=PEER))
        first.start()
        connection, _ = silent.accept()
        with connection:
            # The parent's thread waits for an answer, and nobody waits in the child.
            in_child(lambda: (gate.decide(peer=PEER), gate.close()))
        first.join(60)
        assert not first.is_alive()
        gate.close()


def test_an_outage_follows_the_policy_and_never_raises():
    with redis_server() as (url, end), Gate(POLICY, redis=url) as closed, Gate(OPEN, redis=url) as opened:
        assert closed.decide(peer=PEER) and opened.decide(peer=PEER)
        end()
        refused = closed.decide(peer=PEER)
        assert (refused.answer, refused.status) in [("store-failed", 503), ("denied", 429)]
        assert opened.decide(peer=PEER)
        assert asyncio.run(opened.decide_async(peer=PEER))


def test_a_redis_that_is_not_there_follows_the_policy_too(tmp_path):
    url = f"unix://{tmp_path}/none.sock"
    with Gate(POLICY, redis=url) as closed, Gate(OPEN, redis=url) as opened:
        assert not closed.decide(peer=PEER)
        assert opened.decide(peer=PEER)


def test_an_interpreter_ends_with_gates_that_are_open_and_decisions_under_way(redis):
    script = f"""
import asyncio, threading
from spillgate import Gate
gate = Gate({POLICY!r}, redis={redis!r}, prefix="ends:")
outcome = gate.decide(peer="203.0.113.7")
def forever():
    while True:
        gate.decide(peer="203.0.113.8")
threading.Thread(target=forever, daemon=True).start()
async def main():
    for _ in range(50):
        asyncio.ensure_future(gate.decide_async(peer="203.0.113.9"))
    await asyncio.sleep(0)
asyncio.run(main())
"""
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    assert "Fatal" not in ended.stderr and "panic" not in ended.stderr, ended.stderr


@pytest.mark.parametrize(("on_store_error", "answer"), [("refuse", (503, "store-failed")), ("allow", (200, "allowed"))])
def test_a_gate_that_cannot_start_answers_as_its_store_has_failed(on_store_error, answer):
    # Without a file descriptor there is no runtime.
    script = f"""
import asyncio, resource
import spillgate._aio
from spillgate import Gate
from spillgate.asgi import SpillgateMiddleware
gate = Gate({POLICY!r}, redis="redis://127.0.0.1:1", on_store_error={on_store_error!r})
loop = asyncio.new_event_loop()
loop.run_until_complete(asyncio.sleep(0))
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
async def asked():
    return await gate.decide_async(peer="203.0.113.7")
for outcome in (gate.decide(peer="203.0.113.7"), loop.run_until_complete(asked())):
    assert (outcome.status, outcome.answer) == {answer!r}, outcome
async def app(scope, receive, send):
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
sent = []
async def send(message):
    sent.append(message)
scope = {{"type": "http", "path": "/", "headers": [], "client": None}}
loop.run_until_complete(SpillgateMiddleware(app, gate)(scope, None, send))
assert sent[0]["status"] == {answer[0]}, sent
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "the gate cannot start: " in ended.stderr
