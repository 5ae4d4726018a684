"""Limiters decide as the library does; time is a ManualClock."""

import gc
import inspect
import math
import weakref
from datetime import datetime, timedelta, timezone

import pytest

from spillgate import Limiter, ManualClock, RateLimited, SpillgateError, check_all

ALGORITHMS = [
    "token-bucket",
    "leaky-bucket",
    "leaky-shaper",
    "interval-bucket",
    "fixed-window",
    "first-hit-window",
    "sliding-window",
]


@pytest.fixture
def clock():
    return ManualClock()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_admits_its_limit_and_says_when_to_retry(clock, algorithm):
    limiter = Limiter("5/s", algorithm=algorithm, clock=clock)
    assert [limiter.allow("ann") for _ in range(6)] == [True] * 5 + [False]
    denied = limiter.check("ann")
    assert denied.denied and not denied.never and denied.remaining == 0
    assert denied.retry_after_ns > 0
    assert denied.retry_after_secs == math.ceil(denied.retry_after)
    clock.advance_ns(denied.retry_after_ns)
    assert limiter.check("ann").allowed


def test_a_decision_has_what_a_response_needs(clock):
    limiter = Limiter("10/s burst 20", clock=clock)
    decision = limiter.check("ann", 5)
    assert decision and decision.allowed and not decision.denied
    assert (decision.limit, decision.remaining, decision.cost, decision.owed) == (20, 15, 5, 5)
    assert (decision.retry_after, decision.reset_after, decision.window) == (0.0, 0.5, 2.0)
    never = limiter.check("ann", 21)
    assert never.never and never.retry_after is None and never.retry_after_secs is None
    assert repr(decision) == "Decision(allowed=True, limit=20, remaining=15, retry_after=0.0)"


@pytest.mark.parametrize("method", ["check", "allow", "peek", "reserve"])
def test_arguments_have_names(clock, method):
    call = getattr(Limiter("20/s", clock=clock), method)
    for arguments, names in [
        (["ann"], {}),
        (["ann", 4], {}),
        (["ann"], {"cost": 4}),
        ([], {"key": "ann"}),
        ([], {"cost": 1, "key": "ann"}),
    ]:
        assert call(*arguments, **names), (arguments, names)
    assert not call("ann", cost=21)
    assert str(inspect.signature(call)) == "(key, cost=1)"
    with pytest.raises(TypeError):
        call(key="ann", costs=1)
    with pytest.raises(TypeError):
        call("ann", key="ann")
    with pytest.raises(TypeError):
        call()


def test_methods_know_their_class(clock):
    limiter = Limiter("10/s", clock=clock)
    assert Limiter.check(limiter, "ann").remaining == 9
    for wrong in [(), ("ann",), (None, "ann"), (clock, "ann")]:
        with pytest.raises(TypeError):
            Limiter.check(*wrong)
        with pytest.raises(TypeError):
            Limiter.allow(*wrong)


def test_peek_spends_nothing_and_debit_goes_into_bounded_debt(clock):
    limiter = Limiter("10/s", max_debt=5, clock=clock)
    assert limiter.peek("ann", 3).remaining == 10
    assert limiter.peek("ann").remaining == 10
    settled = limiter.debit("ann", 20)
    assert (settled.left.owed, settled.uncharged) == (15, 5)
    limiter.refund("ann", 7)
    assert limiter.peek("ann").remaining == 2
    limiter.reset("ann")
    assert limiter.peek("ann").remaining == 10


def test_a_shaper_spaces_calls_out(clock):
    limiter = Limiter("10/s burst 3", algorithm="leaky-shaper", clock=clock)
    assert [limiter.check("ann").wait_ns for _ in range(3)] == [0, 100_000_000, 200_000_000]


def test_a_bucket_can_start_empty(clock):
    limiter = Limiter("1/s", start="empty", clock=clock)
    assert limiter.check("ann").denied
    clock.advance(1)
    assert limiter.check("ann").allowed


def test_tiers_are_assigned_by_a_function_of_the_key(clock):
    tiers = {"gold": "100/s", "silver": "50/s"}
    limiter = Limiter(
        "10/s", tiers=tiers, tier_of=lambda key: key[0] if isinstance(key, tuple) else None, clock=clock
    )
    assert limiter.check(("gold", 1)).limit == 100
    assert limiter.check(("silver", 1)).limit == 50
    assert limiter.check(("lead", 1)).limit == 10, "an unknown tier has the limiter's own quota"
    assert limiter.check("ann").limit == 10
    assert limiter.quota_of(("gold", 1)) == "100/s"
    assert [one.limit for one in limiter.check_many([("gold", 1), "ann"])] == [100, 10]
    limiter.set_tier_quota("gold", "200/s")
    assert limiter.peek(("gold", 2)).limit == 200


def test_a_tier_function_may_use_the_limiter_itself(clock):
    def tier_of(key):
        if key == "outer":
            limiter.check("inner")
            return "gold"
        return None

    limiter = Limiter("10/s", tiers={"gold": "100/s"}, tier_of=tier_of, clock=clock)
    assert limiter.check("outer").limit == 100
    assert limiter.peek("inner").remaining == 9


def test_what_a_tier_function_raises_propagates_and_nothing_is_spent(clock):
    def tier_of(_key):
        raise LookupError("no such customer")

    limiter = Limiter("10/s", tiers={"gold": "100/s"}, tier_of=tier_of, clock=clock)
    calls = [
        lambda: limiter.check("ann"),
        lambda: limiter.allow("ann"),
        lambda: limiter.check_many(["ann"]),
        lambda: check_all([(limiter, "ann")]),
        lambda: limiter.wait("ann"),
        lambda: limiter.wait_blocking("ann"),
    ]
    for call in calls:
        with pytest.raises(LookupError, match="no such customer"):
            call()
    assert limiter.active_callers() == 0


def test_an_override_holds_until_its_time_by_the_limiters_clock(clock):
    limiter = Limiter("10/s", clock=clock)
    limiter.set_override("ann", "100/s", ttl=timedelta(minutes=1))
    limiter.set_override("bob", "50/s", until=datetime.fromtimestamp(clock.now() + 60, timezone.utc))
    limiter.set_override("eve", "1/min")
    assert limiter.override_until("ann") == limiter.override_until("bob") == clock.now() + 60
    assert (limiter.quota_of("ann"), limiter.quota_of("bob"), limiter.quota_of("eve")) == (
        "100/s",
        "50/s",
        "1/min",
    )
    clock.advance(60)
    assert limiter.quota_of("ann") == limiter.quota_of("bob") == "10/s"
    assert limiter.override_until("eve") is None
    assert limiter.remove_override("eve") == "1/min"
    assert limiter.remove_override("eve") is None


def test_a_new_quota_keeps_what_was_spent(clock):
    limiter = Limiter("10/s", clock=clock)
    limiter.check("ann", 7)
    limiter.set_quota("20/s")
    assert limiter.quota == "20/s"
    assert limiter.peek("ann").remaining == 13


def test_a_reservation_is_settled_once(clock):
    limiter = Limiter("1000/min", clock=clock)
    reservation = limiter.reserve("ann", 300)
    assert reservation and reservation.open and reservation.reserved == 300
    assert reservation.settle(450).left.remaining == 550
    assert not reservation.open
    with pytest.raises(SpillgateError, match="already"):
        reservation.settle(1)
    with pytest.raises(SpillgateError, match="already"):
        reservation.cancel()


def test_a_reservation_can_be_cancelled_while_it_is_the_last(clock):
    limiter = Limiter("10/s", clock=clock)
    first, second = limiter.reserve("ann"), limiter.reserve("ann")
    assert (first.cancel(), second.cancel()) == (False, True)
    assert limiter.peek("ann").remaining == 9


def test_a_reservation_is_a_context_manager(clock):
    limiter = Limiter("10/s", clock=clock)
    with limiter.reserve("ann", 4):
        pass
    assert limiter.peek("ann").remaining == 6, "the estimate stays spent"
    with pytest.raises(KeyError), limiter.reserve("ann", 4):
        raise KeyError
    assert limiter.peek("ann").remaining == 6, "what failed is returned"
    with pytest.raises(RateLimited) as raised, limiter.reserve("ann", 7):
        pytest.fail("a denied block runs")
    assert raised.value.decision.retry_after_ns == 100_000_000
    denied = limiter.reserve("ann", 7)
    assert not denied and not denied.open and denied.decision.denied
    with pytest.raises(SpillgateError, match="denied"):
        denied.settle(0)


def test_a_reservation_outlives_its_limiter(clock):
    reservation = Limiter("10/s", clock=clock).reserve("ann", 4)
    assert reservation.settle(1).left.remaining == 9


def test_a_batch_decides_in_order(clock):
    limiter = Limiter("2/s", clock=clock)
    keys = ["ann", "bob", "ann", "ann", 7, ("ann",)]
    assert limiter.allow_many(iter(keys)) == [True, True, True, False, True, True]
    assert [one.remaining for one in limiter.check_many(["bob", "bob"])] == [0, 0]
    assert limiter.check_many([]) == []


def test_several_limiters_spend_all_or_nothing(clock):
    per_user = Limiter("2/s", clock=clock)
    in_all = Limiter("3/s", clock=clock)
    assert check_all([(per_user, "ann"), (in_all, "")])
    assert check_all([(per_user, "ann"), (in_all, "")])
    denied = check_all([(per_user, "ann"), (in_all, "")])
    assert not denied and [one.allowed for one in denied.decisions] == [False, True]
    assert denied.retry_after == 0.5 and denied.retry_after_secs == 1
    assert in_all.peek("").remaining == 1, "nothing was spent on the other"
    assert check_all([(per_user, "bob", 2), (in_all, "", 0)])


def test_all_limiters_of_one_decision_have_the_same_clock(clock):
    with pytest.raises(SpillgateError, match="same clock"):
        check_all([(Limiter("1/s", clock=clock), "ann"), (Limiter("1/s"), "ann")])


def test_counts_and_callers(clock):
    limiter = Limiter("1/s", clock=clock)
    limiter.check_many(["ann", "bob", "bob"])
    counts = limiter.counts()
    assert (counts.allowed, counts.denied, counts.evictions, counts.kept_spends) == (2, 1, 0, 0)
    assert limiter.active_callers() == 2
    clock.advance(1)
    assert limiter.active_callers() == 0
    assert limiter.purge_idle() == 2


@pytest.mark.parametrize(("when_full", "admitted"), [("evict", 1000), ("deny", 100)])
def test_a_full_table_evicts_or_denies(clock, when_full, admitted):
    limiter = Limiter("1/day", capacity=100, when_full=when_full, clock=clock)
    allowed = sum(limiter.allow_many(range(1000)))
    if when_full == "evict":
        assert allowed == admitted and limiter.counts().evictions > 0
    else:
        # The table has room for more than its capacity: it is built of whole groups.
        assert admitted <= allowed < 1000
        denied = next(one for one in limiter.check_many(range(1000)) if one.table_full)
        assert denied.denied


def test_a_manual_clock_is_moved_and_shown():
    clock = ManualClock(start=1_000)
    clock.advance(1.5)
    clock.advance(timedelta(milliseconds=500))
    clock.advance_ns(7)
    assert clock.now_ns() == 1_002_000_000_007
    clock.set_ns(5)
    assert clock.now_ns() == 5
    assert repr(ManualClock(2)) == "ManualClock(2.0)"


def test_a_limiter_in_a_reference_cycle_is_collected():
    class TierOf:
        def __call__(self, key):
            return None

    tier_of = TierOf()
    tier_of.limiter = Limiter("1/s", tiers={"gold": "2/s"}, tier_of=tier_of)
    gone = weakref.ref(tier_of)
    del tier_of
    gc.collect()
    assert gone() is None
