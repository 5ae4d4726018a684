"""Wrong arguments are errors of Python's own kinds, with a text that says what would be right."""

import pytest

from spillgate import Gate, Limiter, ManualClock, Policy, SpillgateError, check_all

POLICY = '[[limit]]\nname = "api"\nquota = "1/s"\n'


@pytest.mark.parametrize(
    ("arguments", "settings", "text"),
    [
        (["10/fortnight"], {}, 'unknown unit "fortnight"'),
        ([""], {}, "quota"),
        (["0/s"], {}, "0"),
        (["1/s"], {"algorithm": "magic"}, 'unknown algorithm "magic"'),
        (["1/s"], {"when_full": "wait"}, "use one of evict, protect, deny"),
        (["1/s"], {"start": "half"}, "use one of full, empty"),
        (["1/s"], {"start": "empty", "algorithm": "fixed-window"}, "cannot start empty"),
        (["1/s"], {"capacity": 0}, "capacity"),
        (["1/s"], {"capacity": 2**60}, "capacity"),
        (["1/s"], {"tiers": {"gold": "2/s"}}, "tier_of"),
        (["1/s"], {"tiers": {"gold": "?"}, "tier_of": str}, "not a number"),
    ],
    ids=str,
)
def test_a_limiter_that_cannot_be_built(arguments, settings, text):
    with pytest.raises(SpillgateError) as raised:
        Limiter(*arguments, **settings)
    assert text in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (TypeError, lambda limiter: limiter.check()),
        (TypeError, lambda limiter: limiter.check("ann", 1, 2)),
        (TypeError, lambda limiter: limiter.check("ann", costs=1)),
        (TypeError, lambda limiter: limiter.check("ann", "1")),
        (TypeError, lambda limiter: limiter.check("ann", 1.5)),
        (TypeError, lambda limiter: limiter.check("ann", None)),
        (OverflowError, lambda limiter: limiter.check("ann", -1)),
        (OverflowError, lambda limiter: limiter.check("ann", 2**64)),
        (UnicodeEncodeError, lambda limiter: limiter.check("\ud800")),
        (UnicodeEncodeError, lambda limiter: limiter.check(("ann", "\udfff"))),
        (TypeError, lambda limiter: limiter.check_many(7)),
        (TypeError, lambda limiter: limiter.check_many(["ann", None])),
        (TypeError, lambda limiter: check_all([("ann", limiter)])),
        (TypeError, lambda limiter: check_all([limiter])),
        (ValueError, lambda limiter: check_all([(limiter,)])),
        (ValueError, lambda limiter: check_all([(limiter, "ann", 1, 1)])),
        (SpillgateError, lambda limiter: limiter.set_quota("?")),
        (SpillgateError, lambda limiter: limiter.set_override("ann", "?")),
        (SpillgateError, lambda limiter: limiter.set_override("ann", "1/s", until=1.0, ttl=1)),
        (SpillgateError, lambda limiter: limiter.set_override("ann", "1/s", ttl=-1)),
        (SpillgateError, lambda limiter: limiter.set_override("ann", "1/s", until=float("nan"))),
        (SpillgateError, lambda limiter: limiter.set_tier_quota("gold", "1/s")),
        (SpillgateError, lambda limiter: limiter.wait("ann", timeout=-1)),
        (SpillgateError, lambda limiter: limiter.wait_blocking("ann", timeout=float("nan"))),
        (TypeError, lambda limiter: limiter.wait("ann", timeout="1")),
        (TypeError, lambda limiter: limiter.wait(None)),
        (OverflowError, lambda limiter: limiter.reserve("ann").settle(-1)),
    ],
)
def test_a_call_with_wrong_arguments(kind, call):
    limiter = Limiter("5/s", clock=ManualClock())
    with pytest.raises(kind):
        call(limiter)
    assert limiter.peek("bob").remaining == 5


def test_a_wrong_key_in_a_batch_raises_before_anything_is_spent():
    limiter = Limiter("5/s", clock=ManualClock())
    with pytest.raises(TypeError):
        limiter.check_many(["ann", "bob", None])
    with pytest.raises(ZeroDivisionError):
        limiter.check_many("ann" if index else str(1 // index) for index in (1, 0))
    assert limiter.active_callers() == 0


def test_a_tier_function_that_returns_something_else():
    limiter = Limiter("1/s", tiers={"gold": "2/s"}, tier_of=lambda key: 7)
    with pytest.raises(TypeError, match="tier_of returned a int"):
        limiter.check("ann")


@pytest.mark.parametrize(
    ("seconds", "kind"),
    [(-1, SpillgateError), (float("inf"), SpillgateError), (float("nan"), SpillgateError), ("1", TypeError)],
)
def test_a_clock_moves_forward_by_a_number_of_seconds(seconds, kind):
    with pytest.raises(kind):
        ManualClock().advance(seconds)


@pytest.mark.parametrize(
    ("policy", "texts"),
    [
        ("", ["no limits"]),
        ("[[limit]\n", ["line 1"]),
        ('[[limit]]\nname = "api"\nquota = "?"\ncolour = 1\n', ["line 3", "line 4", "colour"]),
    ],
)
def test_a_policy_reports_everything_that_is_wrong(policy, texts):
    with pytest.raises(SpillgateError) as raised:
        Policy(policy)
    for text in texts:
        assert text in str(raised.value)
    with pytest.raises(SpillgateError):
        Gate(policy)


def test_a_policy_file_that_cannot_be_read(tmp_path):
    with pytest.raises(SpillgateError, match="cannot be read"):
        Policy.load(tmp_path / "none.toml")
    with pytest.raises(SpillgateError, match="not a file"):
        Policy.load(tmp_path)
    with pytest.raises(TypeError):
        Gate(7)


@pytest.mark.parametrize(
    ("kind", "request_", "text"),
    [
        (SpillgateError, {"method": "GET /"}, "method"),
        (SpillgateError, {"method": ""}, "method"),
        (SpillgateError, {"peer": "testclient"}, "not an IP address"),
        (SpillgateError, {"headers": [("a b", "c")]}, "header name"),
        (SpillgateError, {"headers": {"a": "b\r\nc: d"}}, "control character"),
        (SpillgateError, {"headers": {"a": "\u2603"}}, "Latin-1"),
        (SpillgateError, {"headers": [(f"a{i}", "b") for i in range(40_000)]}, "too many headers"),
        (SpillgateError, {"caller": "42"}, "not a caller"),
        (TypeError, {"headers": [("a", 1)]}, "str or bytes"),
        (TypeError, {"headers": 7}, ""),
        (TypeError, {"headers": [7]}, ""),
        (ValueError, {"headers": [("a", "b", "c")]}, ""),
        (TypeError, {"path": 7}, "str or bytes"),
        (TypeError, {"colour": "red"}, "colour"),
    ],
)
def test_a_request_that_is_none(kind, request_, text):
    gate = Gate(POLICY, clock=ManualClock())
    with pytest.raises(kind) as raised:
        gate.decide(**request_)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"redis": "http://127.0.0.1"}, "redis"),
        ({"redis": "redis://127.0.0.1", "clock": ManualClock()}, "clock of Redis"),
        ({"redis": "redis://127.0.0.1", "secret": ""}, "secret"),
        ({"on_store_error": "ignore"}, "use one of refuse, allow"),
        ({"headers": ["x"]}, "rate-limit"),
    ],
    ids=str,
)
def test_a_gate_that_cannot_be_built(settings, text):
    with pytest.raises(SpillgateError) as raised:
        Gate(POLICY, **settings)
    assert text in str(raised.value)


def test_a_limit_by_name_must_exist_and_get_its_values():
    gate = Gate(POLICY, clock=ManualClock())
    for call in (gate.check_limit, gate.peek_limit, gate.reset_limit):
        with pytest.raises(SpillgateError, match="did you mean"):
            call("apis", ["user:1"])
        with pytest.raises(SpillgateError, match="counted per caller"):
            call("api", [])


def test_a_response_has_a_status():
    outcome = Gate(POLICY, clock=ManualClock()).decide(peer="203.0.113.7")
    with pytest.raises(SpillgateError, match="invalid status 99"):
        outcome.settle(99)
    with pytest.raises(OverflowError):
        outcome.settle(-1)
