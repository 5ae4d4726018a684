"""The storage for `limits`: exact, bounded, and the same as `memory://` where that is exact."""

import os
import pickle
import random
import threading
import time

import pytest
from limits import RateLimitItemPerMinute, RateLimitItemPerSecond
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string
from limits.strategies import (
    FixedWindowRateLimiter,
    MovingWindowRateLimiter,
    SlidingWindowCounterRateLimiter,
)

import spillgate.limits
from spillgate._spillgate import WindowStore

STRATEGIES = [FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter]
START = 1_700_000_000.0


@pytest.fixture
def store():
    return WindowStore(1_000)


class Model:
    """Every hit of one key, and what follows from it."""

    def __init__(self):
        self.hits = []
        self.counted = []

    def incr(self, expiry, amount, now):
        if not self.counted or self.counted[0][0] + expiry <= now:
            self.counted = []
        self.counted.append((now, amount))
        return sum(amount for _, amount in self.counted)

    def acquire_entry(self, limit, expiry, amount, now):
        if self.moving(expiry, now)[1] + amount > limit:
            return False
        self.hits.append((now, amount))
        return True

    def moving(self, expiry, now):
        inside = [hit for hit in self.hits if hit[0] >= now - expiry]
        return (inside[0][0] if inside else now), sum(amount for _, amount in inside)

    def acquire_sliding(self, limit, expiry, amount, now):
        previous, current = (self._in_window(now // expiry - back, expiry) for back in (1, 0))
        weighted = previous * (1 - now % expiry / expiry) + current
        if int(weighted) + amount > limit:
            return False
        self.hits.append((now, amount))
        return True

    def _in_window(self, index, expiry):
        return sum(amount for time, amount in self.hits if time // expiry == index)


def histories(count=200):
    """Random sequences of (amount, time), with times that a float holds exactly."""
    for seed in range(count):
        draw = random.Random(seed)
        now, steps = START, []
        for _ in range(100):
            now += draw.choice([0, 0, 0.125, 0.25, 0.5, 1, 4])
            steps.append((draw.choice([1, 1, 1, 2, 5]), now))
        yield seed, draw.choice([1, 3, 5, 10]), draw.choice([1, 2, 4]), steps


def test_every_strategy_decides_as_a_log_of_all_hits_does():
    for seed, limit, expiry, steps in histories():
        store, fixed, moving, sliding = WindowStore(1_000), Model(), Model(), Model()
        for amount, now in steps:
            where = (seed, limit, expiry, amount, now)
            assert store.incr("k", expiry, amount, now) == fixed.incr(expiry, amount, now), where
            allowed = store.acquire_entry("k", limit, expiry, amount, now)
            assert allowed == moving.acquire_entry(limit, expiry, amount, now), where
            assert store.get_moving_window("k", expiry, now) == moving.moving(expiry, now), where
            allowed = store.acquire_sliding_window_entry("k", limit, expiry, amount, now)
            assert allowed == sliding.acquire_sliding(limit, expiry, amount, now), where


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_threads_together_get_exactly_the_limit(strategy):
    limiter = strategy(storage_from_string("spillgate://"))
    item = RateLimitItemPerMinute(100, 60)
    admitted, barrier = [], threading.Barrier(32)

    def hit():
        barrier.wait()
        admitted.extend(1 for _ in range(20) if limiter.hit(item, "k"))

    threads = [threading.Thread(target=hit) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 100


def test_a_clock_that_is_set_back_admits_nothing_extra(store):
    for call in (store.acquire_entry, store.acquire_sliding_window_entry):
        assert all(call("k", 10, 60, 1, START) for _ in range(10))
        for back in (0, 1, 60, 3600):
            assert not call("k", 10, 60, 1, START - back)
    assert [store.incr("c", 60, 1, START - back) for back in (0, 1, 3600)] == [1, 2, 3]


def test_a_large_moving_window_is_bounded_and_never_exceeded(store):
    limit, expiry = 20_000, 60
    admitted = [
        now
        for now in (START + step / 1_000 for step in range(0, 130_000))
        if store.acquire_entry("k", limit, expiry, 1, now)
    ]
    for first, last in zip(admitted, admitted[limit:]):
        assert last - first > expiry
    # Never more than a window's 4,096th too late.
    assert admitted[limit] - admitted[0] < expiry * (1 + 2 / 4096)
    [(_, _, _, runs)] = store.dump()
    assert len(runs) <= 4097


def test_capacity_bounds_what_is_kept(store):
    for number in range(20_000):
        store.incr(f"k{number}", 3600, 1, START)
        assert len(store) <= 1_000
    for number in range(20_000):
        store.acquire_entry(f"k{number % 100}", 1_000, 3600, 1, START + number)
    kept = store.dump()
    assert len(kept) * 8 + sum(len(runs) for kind, _, _, runs in kept if kind == 1) <= 8_000


def test_a_flood_of_keys_does_not_evict_those_that_have_spent_most(store):
    spenders = [f"spender{number}" for number in range(100)]
    for key in spenders:
        store.incr(key, 3600, 10, START)
    for number in range(50_000):
        store.incr(f"flood{number}", 3600, 1, START + 1)
    assert [store.get(key, START + 2) for key in spenders] == [10] * 100


def test_expired_windows_are_forgotten(store):
    for number in range(300):
        store.incr(f"c{number}", 1, 1, START)
        store.acquire_entry(f"l{number}", 5, 1, 1, START)
        store.acquire_sliding_window_entry(f"s{number}", 5, 1, 1, START)
    assert len(store) == 900
    for step in range(1_000):
        store.incr("busy", 60, 1, START + 10 + step / 1_000)
    assert len(store) == 1


def test_time_is_pythons_so_that_frozen_clocks_work(monkeypatch):
    limiter = FixedWindowRateLimiter(storage_from_string("spillgate://"))
    monkeypatch.setattr(time, "time", lambda: START)
    assert [limiter.hit(RateLimitItemPerSecond(1), "k") for _ in range(2)] == [True, False]
    monkeypatch.setattr(time, "time", lambda: START + 1)
    assert limiter.hit(RateLimitItemPerSecond(1), "k")


def test_fixed_windows_count_denied_hits():
    storage = storage_from_string("spillgate://")
    limiter = FixedWindowRateLimiter(storage)
    item = RateLimitItemPerMinute(2, 60)
    assert [limiter.hit(item, "k") for _ in range(5)] == [True, True, False, False, False]
    assert storage.get(item.key_for("k")) == 5


def test_one_key_may_serve_several_strategies(store):
    assert store.incr("k", 60, 3, START) == 3
    assert store.acquire_entry("k", 1, 60, 1, START)
    assert store.acquire_sliding_window_entry("k", 1, 60, 1, START)
    assert store.acquire_sliding_window_entry("k", 1, 30, 1, START)
    store.clear("k")
    assert store.get("k", START) == 0
    assert store.acquire_entry("k", 1, 60, 1, START)
    assert not store.acquire_sliding_window_entry("k", 1, 60, 1, START)
    store.clear_sliding_window("k", 60)
    assert store.acquire_sliding_window_entry("k", 1, 60, 1, START)
    assert not store.acquire_sliding_window_entry("k", 1, 30, 1, START)
    assert store.reset() == 3 and len(store) == 0


@pytest.mark.parametrize("uri", ["spillgate://", "async+spillgate://"])
def test_options_come_with_the_uri_or_apart(uri):
    assert storage_from_string(uri)._store.capacity == 1_000_000
    assert storage_from_string(f"{uri}?capacity=5000")._store.capacity == 5_000
    assert storage_from_string(uri, capacity="6000")._store.capacity == 6_000


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("spillgate://?capacity=10", "capacity 10 is too small; use at least 1000"),
        ("spillgate://?capacity=", 'capacity "" is invalid'),
        ("spillgate://?capacity=-5", 'capacity "-5" is invalid'),
        ("spillgate://?capacity=many", 'capacity "many" is invalid'),
        ("spillgate://?capacity=99999999999999999999999", "is invalid"),
        ("spillgate://?capcity=5000", 'unknown option "capcity"; the only one is "capacity"'),
        ("spillgate://localhost:6379", "counts are kept in this process"),
        ("async+spillgate:///0", "counts are kept in this process"),
    ],
)
def test_a_wrong_uri_says_what_would_be_right(uri, says):
    with pytest.raises(ConfigurationError, match=says.replace("?", r"\?")):
        storage_from_string(uri)


def test_wrong_arguments_raise_and_count_nothing():
    storage = storage_from_string("spillgate://")
    wrapping = storage_from_string("spillgate://", wrap_exceptions=True)
    for expiry, amount, kind in [
        (0, 1, ValueError),
        (-1, 1, ValueError),
        (float("nan"), 1, ValueError),
        (float("inf"), 1, ValueError),
        (60, -1, OverflowError),
        (60, 2**64, OverflowError),
    ]:
        with pytest.raises(kind):
            storage.incr("k", expiry, amount)
        with pytest.raises(kind):
            storage.acquire_entry("k", 10, expiry, amount)
        with pytest.raises(kind):
            storage.acquire_sliding_window_entry("k", 10, expiry, amount)
        with pytest.raises(StorageError):
            wrapping.incr("k", expiry, amount)
    with pytest.raises(TypeError):
        storage.incr(b"k", 60)
    assert storage.reset() == 0


def test_counts_stop_at_the_largest_number(store):
    largest = 2**64 - 1
    assert store.incr("k", 60, largest, START) == largest
    assert store.incr("k", 60, largest, START) == largest
    assert store.acquire_entry("k", largest, 60, largest, START)
    assert not store.acquire_entry("k", largest, 60, 1, START)


def test_keys_may_be_any_text(store):
    for key in ["", "\0", "ключ", "\ud800", "\udcff" * 3, "x" * 100_000]:
        assert [store.incr(key, 60, 1, START) for _ in range(2)] == [1, 2]
    assert len(store) == 6


def test_long_keys_stay_distinct_and_are_kept_short(store):
    keys = ["x" * length for length in range(100, 160)] + ["x" * 100_000 + end for end in "ab"]
    for amount, key in enumerate(keys, 1):
        store.incr(key, 60, amount, START)
    assert [store.get(key, START) for key in keys] == list(range(1, len(keys) + 1))
    assert max(len(name) for _, name, _, _ in store.dump()) <= 128
    restored = WindowStore(1_000)
    restored.load(store.dump(), START)
    assert restored.get(keys[-1], START) == len(keys)


def test_pickles_keep_what_was_counted():
    storage = storage_from_string("spillgate://?capacity=5000")
    item = RateLimitItemPerMinute(3, 60)
    for strategy in STRATEGIES:
        assert strategy(storage).hit(item, "k", cost=2)
    restored = pickle.loads(pickle.dumps(storage))
    assert restored._store.capacity == 5_000
    for strategy in STRATEGIES:
        assert [strategy(restored).hit(item, "k") for _ in range(2)] == [True, False]
        assert strategy(storage).hit(item, "k")


@pytest.mark.parametrize(
    "record",
    [
        (0, b"k", 1.0, []),
        (0, b"k", float("nan"), [(0.0, 1)]),
        (1, b"k", -1.0, [(0.0, 1)]),
        (1, b"k", 1.0, [(2.0, 1), (1.0, 1)]),
        (1, b"k", 1.0, [(float("nan"), 1)]),
        (2, b"k", 0.0, [(0.0, 1), (0.0, 1)]),
        (2, b"k", 1.0, [(0.0, 1)]),
        (9, b"k", 1.0, []),
    ],
)
def test_a_damaged_pickle_is_refused(store, record):
    with pytest.raises(ValueError):
        store.load([record], START)
    assert len(store) == 0


def test_a_fork_goes_on_with_a_copy():
    storage = storage_from_string("spillgate://")
    storage.incr("k", 60)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            storage.incr("busy", 60)

    threads = [threading.Thread(target=busy) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if storage.incr("k", 60) == 2 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert storage.get("k") == 1


def test_importing_registers_both_schemes():
    assert spillgate.limits.SpillgateStorage.STORAGE_SCHEME == ["spillgate"]
    assert isinstance(storage_from_string("spillgate://"), spillgate.limits.SpillgateStorage)
    storage = storage_from_string("async+spillgate://")
    assert isinstance(storage, spillgate.limits.AsyncSpillgateStorage)
