"""Keys of different types and values never share an allowance."""

import contextlib
import sys
from enum import Enum, IntEnum
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillgate import Limiter, ManualClock

scalars = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st.integers()
    | st.ip_addresses()
)
keys = st.recursive(scalars, lambda part: st.lists(part, max_size=3).map(tuple), max_leaves=6)


def identity(key):
    """What makes a key that key: its value and the types in it."""
    if isinstance(key, tuple):
        return ("tuple", *map(identity, key))
    if isinstance(key, IPv6Address) and key.ipv4_mapped:
        key = key.ipv4_mapped
    return (type(key).__name__, key)


@given(keys, keys)
def test_two_keys_share_an_allowance_exactly_if_they_are_the_same(one, other):
    limiter = Limiter("1/s", clock=ManualClock())
    assert limiter.allow(one)
    assert limiter.allow(other) == (identity(one) != identity(other))


LOOK_ALIKES = [
    "1",
    b"1",
    1,
    ("1",),
    (1,),
    (("1",),),
    "",
    b"",
    (),
    ((),),
    0,
    -1,
    2**63,
    -(2**63),
    2**64 - 1,
    2**200,
    -(2**200),
    ("a", "b"),
    ("ab",),
    ("a", "", "b"),
    ("a", ("b",)),
    "\xff",
    b"\xff",
    b"\xffi\x01\x00\x00\x00\x00\x00\x00\x00",
    "\0",
    ip_address("1.2.3.4"),
    ip_address("::1.2.3.4"),
    b"\x01\x02\x03\x04",
    "1.2.3.4",
    ip_address("fe80::1"),
    ip_address("fe80::1%eth0"),
    ip_address("fe80::1%eth1"),
]


def test_keys_that_look_alike_are_different():
    limiter = Limiter("1/s", clock=ManualClock())
    assert [key for key in LOOK_ALIKES if not limiter.allow(key)] == []
    assert [key for key in LOOK_ALIKES if limiter.allow(key)] == []


def test_an_address_of_ipv4_is_the_same_in_ipv6():
    limiter = Limiter("1/s", clock=ManualClock())
    assert limiter.allow(IPv4Address("1.2.3.4"))
    assert not limiter.allow(IPv6Address("::ffff:1.2.3.4"))


def test_subclasses_count_as_their_base():
    class Tenant(str):
        pass

    class Level(IntEnum):
        LOW = 1

    class Colour(str, Enum):
        RED = "red"

    limiter = Limiter("1/s", clock=ManualClock())
    for key, base in [(Tenant("ann"), "ann"), (Level.LOW, 1), (Colour.RED, "red")]:
        assert limiter.allow(key)
        assert not limiter.allow(base), base


@pytest.mark.parametrize(
    "key",
    [None, True, 1.5, 1j, [], {}, set(), bytearray(b"x"), memoryview(b"x"), object(), ("a", None), str],
    ids=repr,
)
def test_anything_else_is_a_type_error(key):
    limiter = Limiter("1/s", clock=ManualClock())
    with pytest.raises(TypeError, match="use str, bytes, int, an IPv4Address"):
        limiter.check(key)
    assert limiter.active_callers() == 0


def test_tuples_are_nested_to_a_bounded_depth():
    limiter = Limiter("1/s", clock=ManualClock())
    key = ("deep",)
    for _ in range(100_000):
        key = (key,)
    with pytest.raises(TypeError, match="16 deep"):
        limiter.check(key)
    # CPython itself takes apart deep tuples recursively, but bounded.


@pytest.mark.parametrize("key", [2**70, ("u", 2**64), None, ("u", 1.5), "\ud800", "k"], ids=repr)
@pytest.mark.parametrize("cost", [1, 2**70, "1"], ids=repr)
@pytest.mark.parametrize("method", ["allow", "check"])
def test_no_key_and_no_cost_leaves_memory_behind(method, key, cost):
    call = getattr(Limiter("1/s"), method)

    def repeat(times):
        for _ in range(times):
            with contextlib.suppress(TypeError, OverflowError, UnicodeError):
                call(key, cost)

    repeat(100)
    before = sys.getallocatedblocks()
    repeat(5_000)
    assert sys.getallocatedblocks() - before < 1_000
