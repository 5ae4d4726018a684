"""The stubs say what the native module has, and the package is fully typed."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import asyncio
from datetime import timedelta
from ipaddress import ip_address

from spillgate import Decision, Gate, Limiter, ManualClock, Policy, check_all

limiter = Limiter("10/s", algorithm="sliding-window", tiers={"gold": "1/s"}, tier_of=lambda key: None)
key: tuple[str, int] = ("ann", 7)
decision: Decision = limiter.check(key)
seconds: float | None = decision.retry_after
allowed: bool = limiter.allow(ip_address("203.0.113.7"))
check_all([(limiter, "ann"), (limiter, b"bob", 2)])


async def main() -> Decision:
    outcome = await Gate(Policy("")).decide_async(headers=[(b"a", b"b")], peer=None)
    names: list[str] = [limit.name for limit in outcome.limits]
    return await limiter.wait("ann", timeout=timedelta(seconds=1))


asyncio.run(main())
ManualClock().advance(1)
"""

WRONG = """
from spillgate import Limiter

Limiter("1/s", when_full="wait")
Limiter("1/s").check(1.5)
Limiter("1/s").check("ann").remaning
"""


def mypy(*arguments):
    ran = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=280, cwd=Path(__file__).parent
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_the_stubs_agree_with_the_native_module():
    code, output = mypy("mypy.stubtest", "spillgate._spillgate", "--concise")
    assert code == 0, output


def test_programs_are_checked_strictly(tmp_path):
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    code, output = mypy("mypy", "--strict", str(tmp_path / "right.py"))
    assert code == 0, output
    code, output = mypy("mypy", "--strict", str(tmp_path / "wrong.py"))
    assert code == 1 and output.count("error:") == 3, output


def test_the_package_is_checked_strictly():
    code, output = mypy("mypy", "--strict", "-p", "spillgate")
    assert code == 0, output
