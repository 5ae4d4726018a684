"""A child of a fork has a copy of every limiter, and nobody who waited in the parent."""

import asyncio
import multiprocessing
import os
import threading
import warnings

import pytest

from spillgate import Gate, Limiter, ManualClock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def in_child(work):
    """Runs a function in the child of a fork; what it raises is an error here."""
    with warnings.catch_warnings():
        # Python warns that other threads exist: that is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
    child.join(60)
    # One that hangs would hold up the end of the run.
    child.kill()
    assert child.exitcode == 0


def test_a_child_continues_with_a_copy():
    clock = ManualClock()
    limiter = Limiter("10/s", clock=clock)
    limiter.check("ann", 4)

    def child():
        assert limiter.check("ann", 6)
        assert not limiter.check("ann")
        clock.advance(1)
        assert limiter.check("ann", 10)

    in_child(child)
    assert limiter.peek("ann").remaining == 6, "what the child spends is its own"


def test_forks_in_the_middle_of_other_threads_calls():
    limiter = Limiter("1000000/s")
    gate = Gate('[[limit]]\nname = "api"\nquota = "1000/s"\n')
    stop = threading.Event()

    def work(index):
        step = 0
        while not stop.is_set():
            step += 1
            limiter.check(f"{index}-{step}")
            limiter.set_override(index, f"{step % 100 + 1}/s")
            gate.decide(peer="203.0.113.7")
            limiter.set_quota(f"{1_000_000 - step % 2}/s")

    def child():
        for step in range(200):
            limiter.check(f"child-{step}")
            limiter.set_override(step, "1/s")
            gate.decide(peer="203.0.113.8")
        limiter.set_quota("10/s")
        assert Limiter("1/s").check("ann")

    threads = [threading.Thread(target=work, args=[index]) for index in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_whoever_waited_in_the_parent_does_not_wait_in_the_child():
    clock = ManualClock()
    limiter = Limiter("1/s", clock=clock)
    limiter.check("ann")
    worker = threading.Thread(target=limiter.wait_blocking, args=["ann"])
    worker.start()
    while limiter.waiting < 1:
        pass

    def child():
        assert limiter.waiting == 0
        clock.advance(1)
        assert asyncio.run(limiter.wait("ann", timeout=0))
        assert limiter.waiting == 0

    in_child(child)
    assert limiter.waiting == 1
    clock.advance(1)
    worker.join(60)
    assert not worker.is_alive()
