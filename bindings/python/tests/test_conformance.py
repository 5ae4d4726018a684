"""The recorded tables of the conformance suite, which every store and surface must reproduce."""

from pathlib import Path

import pytest

from spillgate import Limiter, ManualClock

TABLES = Path(__file__).parents[2] / "conformance" / "recorded.tsv"
BORN_NS = 1_699_920_000 * 10**9
KEY = "ann"


def recordings():
    """Each recording: its limiter, and its rows."""
    found = []
    for line in TABLES.read_text().splitlines():
        kind, *fields = line.split("\t")
        if kind == "recording":
            found.append((fields, []))
        elif kind == "row":
            found[-1][1].append(fields)
    assert len(found) >= 10, "the tables are missing"
    return [pytest.param(head, rows, id=head[0]) for head, rows in found]


def number(text):
    return None if text == "-" else int(text)


@pytest.mark.parametrize(("head", "rows"), recordings())
def test_recorded(head, rows):
    _title, algorithm, start, quota, limit = head
    clock = ManualClock()
    clock.set_ns(BORN_NS)
    limiter = Limiter(quota, algorithm=algorithm, start=start, clock=clock)
    for index, (at, operation, amount, verdict, remaining, retry, reset, wait) in enumerate(rows):
        clock.set_ns(int(at))
        answer = ask(limiter, operation, int(amount))
        shown = "never" if answer.never else "allowed" if answer.allowed else "denied"
        assert (shown, answer.remaining) == (verdict, int(remaining)), index
        assert answer.limit == int(limit), index
        if shown != "allowed":
            assert answer.retry_after_ns == number(retry), index
        assert answer.idle_after_ns == number(reset), index
        assert answer.wait_ns == int(wait), index


def ask(limiter, operation, amount):
    if operation == "check":
        return limiter.check(KEY, amount)
    if operation == "peek":
        return limiter.peek(KEY, amount)
    if operation == "reset":
        limiter.reset(KEY)
    else:
        getattr(limiter, operation)(KEY, amount)
    return limiter.peek(KEY, 0)
