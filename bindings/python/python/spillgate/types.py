"""The types of arguments, for annotations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Literal, TypeAlias, Union

__all__ = ["Algorithm", "Answer", "Headers", "Key", "Seconds"]

#: Whom a limiter counts. Keys of different types are different callers: 1 is not "1".
Key: TypeAlias = Union[str, bytes, int, IPv4Address, IPv6Address, "tuple[Key, ...]"]

#: A time span.
Seconds: TypeAlias = Union[float, timedelta]

#: How a quota is spent.
Algorithm: TypeAlias = Literal[
    "token-bucket",
    "leaky-bucket",
    "leaky-shaper",
    "interval-bucket",
    "fixed-window",
    "first-hit-window",
    "sliding-window",
]

#: What a gate has decided.
Answer: TypeAlias = Literal[
    "allowed", "denied", "blocked", "banned", "shed", "host-required", "store-failed", "overloaded"
]

#: Headers as frameworks have them.
Headers: TypeAlias = Union[Mapping[str, str], Iterable["tuple[str | bytes, str | bytes]"]]
