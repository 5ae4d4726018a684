"""Gates in this process: what is decided, and what a response needs."""

import asyncio
import gc
import json
from ipaddress import ip_address

import pytest

from spillgate import Gate, ManualClock, Policy, SpillgateError

POLICY = """
[[limit]]
name = "api"
quota = "2/min"
"""


@pytest.fixture
def clock():
    return ManualClock()


def test_a_refusal_has_status_headers_and_a_problem_document(clock):
    gate = Gate(POLICY, clock=clock)
    first = gate.decide(path="/users?page=1", peer="203.0.113.7")
    assert first and first.allowed and (first.status, first.answer, first.body) == (200, "allowed", b"")
    assert dict(first.headers) == {
        "ratelimit-policy": '"api";q=2;w=60',
        "ratelimit": '"api";r=1;t=30',
        "x-ratelimit-limit": "2",
        "x-ratelimit-remaining": "1",
        "x-ratelimit-reset": "30",
    }
    assert [(state.name, state.shadow, state.decision.remaining) for state in first.limits] == [
        ("api", False, 1)
    ]
    gate.decide(peer=ip_address("203.0.113.7"))
    refused = gate.decide(peer="203.0.113.7")
    assert not refused and (refused.status, refused.answer) == (429, "denied")
    assert (refused.denied_by, refused.caller, refused.retry_after) == ("api", "ip:203.0.113.7", 30.0)
    headers = dict(refused.headers)
    assert headers["retry-after"] == "30"
    assert headers["content-type"] == "application/problem+json"
    assert [(name.encode(), value.encode()) for name, value in refused.headers] == refused.raw_headers
    problem = json.loads(refused.body)
    assert (problem["status"], problem["violated-policies"]) == (429, ["api"])
    assert gate.decide(peer="203.0.113.8").allowed, "another caller"


def test_headers_can_be_chosen(clock):
    none = Gate(POLICY, clock=clock, headers=[])
    assert none.decide(peer="203.0.113.7").headers == []
    gate = Gate(POLICY, clock=clock, headers=["retry-after-ms"])
    refused = [gate.decide(peer="203.0.113.7") for _ in range(3)][2]
    assert dict(refused.headers)["retry-after-ms"] == "30000"


def test_a_coroutine_decides_when_it_is_awaited(clock):
    gate = Gate(POLICY, clock=clock)
    gate.decide_async(peer="203.0.113.7").close()

    async def main():
        outcome = await gate.decide_async(peer="203.0.113.7")
        assert outcome.limits[0].decision.remaining == 1, "the other was never awaited"
        await outcome.settle_async(200)
        by_name = await gate.check_limit_async("api", ["ip:203.0.113.7"])
        assert by_name.limits[0].decision.remaining == 0
        with pytest.raises(SpillgateError, match="did you mean"):
            await gate.check_limit_async("apu", ["ip:203.0.113.7"])

    asyncio.run(main())


def test_a_limit_by_name_is_checked_peeked_and_reset(clock):
    gate = Gate(POLICY, clock=clock)
    assert gate.check_limit("api", ["user:42"], 2)
    refused = gate.check_limit("api", ["user:42"])
    assert (refused.status, refused.denied_by) == (429, "api")
    assert gate.peek_limit("api", ["user:42"]).denied
    gate.reset_limit("api", ["user:42"])
    assert gate.peek_limit("api", ["user:42"]).remaining == 2


def test_headers_identify_callers_only_if_a_trusted_proxy_sent_them(clock):
    policy = Policy(
        """
        [identity]
        trusted-proxies = ["10.0.0.0/8"]
        user = { header = "x-user-id" }
        [[limit]]
        name = "api"
        quota = "1/min"
        """
    )
    gate = Gate(policy, clock=clock)
    headers = [(b"X-User-Id", b"42"), ("X-Forwarded-For", "203.0.113.7")]
    assert gate.decide(headers=headers, peer="10.0.0.1")
    refused = gate.decide(headers=dict(reversed([("X-User-Id", "42")])), peer="10.0.0.2")
    assert refused.caller.startswith("user:#"), "a fingerprint, since it may be a secret"
    assert gate.decide(headers=headers, peer="203.0.113.9"), "from elsewhere they are ignored"


def test_a_program_can_say_who_the_caller_is(clock):
    policy = Policy(
        '[[limit]]\nname = "api"\nquota = "1/min"\n'
        '[tier.gold]\ncallers = ["user:42"]\napi = "5/min"\n',
        names_callers=True,
    )
    gate = Gate(policy, clock=clock)
    assert gate.decide(peer="203.0.113.7", caller="user:42").limits[0].decision.limit == 5
    assert gate.decide(peer="203.0.113.7", caller="user:7").limits[0].decision.limit == 1


def test_hosts_and_paths_are_matched(clock):
    login = '[[limit]]\nname = "login"\nquota = "1/min"\nmatch = { path = "/login", host = "example.com" }\n'
    gate = Gate(login, clock=clock)
    assert gate.decide(path="/login", peer="203.0.113.7").answer == "host-required"
    met = gate.decide(path=b"/login?next=/", host="example.com", peer="203.0.113.7")
    assert [state.name for state in met.limits] == ["login"]
    by_header = gate.decide(path="/login", headers={"Host": "example.com"}, peer="203.0.113.7")
    assert by_header.status == 429
    assert gate.decide(path="/", headers={"Host": "example.com"}, peer="203.0.113.7").limits == []
    assert gate.decide(path=b"/\xff", headers={"Host": "example.com"}, peer="203.0.113.7")


CONCURRENT = '[[limit]]\nname = "jobs"\nconcurrent = 1\nper = ["ip"]\n'


def test_permits_are_held_until_they_are_released(clock):
    gate = Gate(CONCURRENT, clock=clock)

    def ask():
        return gate.decide(peer="203.0.113.7")

    first = ask()
    assert first.permits == 1
    assert ask().status == 429
    first.release()
    first.release()
    assert first.permits == 0
    with ask() as held:
        assert held and not ask()
    assert ask().allowed, "released by being dropped"
    gc.collect()
    with pytest.raises(KeyError), ask() as held:
        assert held
        raise KeyError
    assert ask().allowed


SETTLED = """
[[limit]]
name = "tokens"
quota = "10/min"
per = ["ip"]
settle = { header = "x-cost" }
"""


def test_a_cost_is_settled_by_the_response_once(clock):
    gate = Gate(SETTLED, clock=clock)
    outcome = gate.decide(peer="203.0.113.7")
    assert outcome.limits[0].decision.remaining == 9
    outcome.settle(200, {"x-cost": "4"})
    assert outcome.limits[0].decision.remaining == 6
    assert dict(outcome.headers)["x-ratelimit-remaining"] == "6"
    outcome.settle(200, {"x-cost": "9"})
    outcome.fail()
    assert gate.peek_limit("tokens", ["203.0.113.7"]).remaining == 6
    other = gate.decide(peer="203.0.113.8")
    asyncio.run(other.settle_async(200, [(b"X-Cost", b"3")]))
    assert other.limits[0].decision.remaining == 7


def test_a_shaper_makes_requests_wait_and_takes_back_the_last(clock):
    gate = Gate(
        '[[limit]]\nname = "slow"\nquota = "10/s burst 3"\nalgorithm = "leaky-shaper"\nper = ["ip"]\n',
        clock=clock,
    )
    waits = [gate.decide(peer="203.0.113.7") for _ in range(3)]
    assert [outcome.wait for outcome in waits] == [0.0, 0.1, 0.2]
    waits[2].cancel()
    assert gate.decide(peer="203.0.113.7").wait == 0.2
    waits[1].start()


def test_a_new_policy_keeps_what_was_spent(clock):
    gate = Gate(POLICY, clock=clock)
    gate.decide(peer="203.0.113.7")
    gate.replace(Policy(POLICY.replace("2/min", "3/min")))
    assert gate.decide(peer="203.0.113.7").limits[0].decision.remaining == 1
    with pytest.raises(SpillgateError):
        gate.replace("[[limit]]\n")
    assert gate.limits() == ["api"]


def test_a_policy_is_loaded_from_a_file_with_its_folder(tmp_path):
    file = tmp_path / "spillgate.toml"
    file.write_text(POLICY)
    assert Policy.load(file).limits == ["api"]
    assert Gate(Policy.load(str(file))).decide(peer="203.0.113.7")
    file.write_text("[[limit]]\nname = 7\n")
    with pytest.raises(SpillgateError, match=r"spillgate\.toml:2"):
        Policy.load(file)


def test_limits_in_shadow_mode_and_lists(clock):
    gate = Gate(
        'block = ["203.0.113.9"]\n[[limit]]\nname = "new"\nquota = "1/min"\nmode = "shadow"\nper = ["ip"]\n',
        clock=clock,
    )
    gate.decide(peer="203.0.113.7")
    shadowed = gate.decide(peer="203.0.113.7")
    assert shadowed and shadowed.limits[0].shadow and shadowed.limits[0].decision.denied
    blocked = gate.decide(peer="203.0.113.9")
    assert (blocked.answer, blocked.status, blocked.retry_after) == ("blocked", 403, None)
