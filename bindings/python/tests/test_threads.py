"""Exactness under threads."""

import threading

import pytest

from spillgate import Gate, Limiter, ManualClock, check_all


def run(count, work):
    """Runs threads that all start at the same moment."""
    start = threading.Barrier(count)
    errors = []

    def thread(index):
        try:
            start.wait()
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=thread, args=[index]) for index in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
        assert not one.is_alive()
    assert errors == []


@pytest.mark.parametrize("algorithm", ["token-bucket", "leaky-bucket", "fixed-window", "sliding-window"])
def test_200_threads_against_a_burst_of_100_admit_exactly_100(algorithm):
    limiter = Limiter("100/day", algorithm=algorithm)
    allowed = []
    run(200, lambda _: allowed.append(limiter.allow("ann")))
    assert (sum(allowed), len(allowed)) == (100, 200)
    assert (limiter.counts().allowed, limiter.counts().denied) == (100, 100)


def test_a_gate_is_as_exact():
    gate = Gate('[[limit]]\nname = "api"\nquota = "100/day"\n')
    allowed = []
    run(200, lambda _: allowed.append(gate.decide(peer="203.0.113.7").allowed))
    assert sum(allowed) == 100


def test_threads_that_change_everything_meanwhile_lose_nothing():
    clock = ManualClock()
    limiter = Limiter("1000/day", clock=clock)
    shared = Limiter("1000/day", clock=clock)
    allowed = []

    def work(index):
        for step in range(50):
            if index == 0:
                limiter.set_override("bob", f"{step + 1}/s")
                limiter.remove_override("bob")
            elif index == 1:
                limiter.check_many([f"other{step}", ("key", step), step])
            elif index == 2:
                limiter.reserve(("eve", step), 5).settle(step)
            else:
                allowed.append(bool(check_all([(limiter, "ann"), (shared, "all")])))

    run(32, work)
    assert sum(allowed) == 1000
    assert limiter.peek("ann").remaining == shared.peek("all").remaining == 0
    assert limiter.counts().kept_spends == 0


def test_concurrency_is_never_exceeded():
    gate = Gate('[[limit]]\nname = "jobs"\nconcurrent = 7\nper = ["ip"]\n')
    held, most = [0], [0]
    lock = threading.Lock()

    def work(_):
        for _ in range(50):
            with gate.decide(peer="203.0.113.7") as outcome:
                if not outcome:
                    continue
                with lock:
                    held[0] += 1
                    most[0] = max(most[0], held[0])
                with lock:
                    held[0] -= 1

    run(16, work)
    assert 0 < most[0] <= 7
    assert gate.decide(peer="203.0.113.7").limits[0].decision.remaining == 6, "all were released"
