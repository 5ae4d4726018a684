"""Compares in-memory limiters from Python, on one thread.

Correctness first: each must admit exactly its limit. Then nanoseconds of the processor per call, in
interleaved rounds; the median counts, and ratios are those of medians."""

import argparse
import csv
import datetime
import os
import pathlib
import platform
import random
import statistics
import sys
import time

from peers import PEERS, versions

#: What is measured: a name, how many keys, and the limit of each.
CASES = [
    ("1 key, allowed", 1, 10**9),
    ("1 thousand keys, allowed", 1_000, 10**9),
    ("100 thousand keys, allowed", 100_000, 10**9),
    ("1 key, denied", 1, 1),
]
#: The aims: what takes at least this many times as long as `spillgate allow`.
AIMS = [("limits, fixed window", 20), ("limits, moving window", 20)]
NEXT_BEST = 10


def admits(build):
    """How many of twenty calls pass a limit of five."""
    call = build(5)
    return [bool(call("ann")) for _ in range(20)]


def nanoseconds(call, keys, seconds):
    """Per call, over as many passes as the time allows. Time of the processor, since other programs
    may have their turn in between."""
    calls, begin = 0, time.thread_time_ns()
    end = begin + seconds * 1e9
    while True:
        for key in keys:
            call(key)
        calls += len(keys)
        now = time.thread_time_ns()
        if now >= end:
            return (now - begin) / calls


def measure(case, rounds, seconds):
    """All rounds of every limiter, and of a call that does nothing."""
    _, count, limit = case
    keys = [f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in range(count)]
    random.Random(7).shuffle(keys)
    keys = keys * max(1, 1_000 // count)
    subjects = {name: build(limit) for name, build, _, _ in PEERS}
    subjects["a call of len"] = len
    for call in subjects.values():
        for key in keys:
            call(key)
    found = {name: [] for name in subjects}
    for index in range(rounds):
        order = list(subjects)
        random.Random(index).shuffle(order)
        for name in order:
            found[name].append(nanoseconds(subjects[name], keys, seconds))
    return found


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def result_rows(found):
    own = statistics.median(found["spillgate allow"])
    for name, values in found.items():
        low, median, high = statistics.quantiles(values, n=4)
        yield name, f"{median:.0f}", f"{low:.0f} to {high:.0f}", f"{median / own:.1f}"


def verdicts(case, found):
    """Each aim, kept or missed."""
    median = {name: statistics.median(values) for name, values in found.items()}
    own = median["spillgate allow"]
    written_in_python = [name for name, _, _, is_python in PEERS if is_python]
    best = min(written_in_python, key=median.get)
    for name, aim in [*AIMS, (best, NEXT_BEST)]:
        ratio = median[name] / own
        what = " (the best written in Python)" if name == best else ""
        yield f"{case[0]}: {ratio:.1f} times as fast as {name}{what}, aim {aim}: " + (
            "kept" if ratio >= aim else "MISSED"
        )
    native = median["rust-py-rate-limit"] / own
    yield f"{case[0]}: {native:.1f} times as fast as rust-py-rate-limit, which is native too"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.05, help="per limiter and round")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of results")
    options = parser.parse_args()
    now = datetime.datetime.now()
    report = [
        f"# Benchmark of {now:%Y-%m-%dT%H:%M}: Python",
        "",
        f"- command: `scripts/bench-python --rounds {options.rounds} --seconds {options.seconds}`",
        f"- Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} hardware threads",
        f"- load before the run: {' '.join(f'{load:.2f}' for load in os.getloadavg())}",
        f"- packages: {versions()}",
        "",
        "## Do they limit?",
        "",
    ]
    passed = {name: admits(build) for name, build, _, _ in PEERS}
    exact = [True] * 5 + [False] * 15
    rows = [(name, str(sum(calls)), "yes" if calls == exact else "NO") for name, calls in passed.items()]
    report += [table(["limiter", "passed of 20", "exactly the first 5"], rows), ""]
    rounds, aims = [], []
    for case in CASES:
        print(case[0], file=sys.stderr)
        found = measure(case, options.rounds, options.seconds)
        for name, values in found.items():
            rounds += [(case[0], name, index, round(value, 2), "ns") for index, value in enumerate(values)]
        aims += list(verdicts(case, found))
        head = ["limiter", "ns per call", "quartiles", "times `spillgate allow`"]
        report += [f"## {case[0]}", "", table(head, result_rows(found)), ""]
    report += ["## Aims", "", *[f"- {aim}" for aim in aims], ""]
    text = "\n".join(report)
    print(text)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / f"python-{now:%Y-%m-%dT%H-%M}"
    file.with_suffix(".md").write_text(text)
    with file.with_suffix(".csv").open("w", newline="") as out:
        writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(["case", "subject", "round", "value", "unit"])
        writer.writerows(rounds)


if __name__ == "__main__":
    main()
