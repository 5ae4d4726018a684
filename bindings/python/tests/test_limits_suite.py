"""The tests that `limits` has for storages and strategies, with only the URI changed."""

import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

SUITE = Path(__file__).parent / "limits_suite"
MODULES = [
    "test_storage.py",
    "test_strategy.py",
    "storage/test_memory.py",
    "integration/test_concurrency.py",
    "aio/test_storage.py",
    "aio/test_strategy.py",
    "aio/storage/test_memory.py",
]
ELSEWHERE = "redis or memcached or mongodb or valkey"


@pytest.fixture(scope="module")
def source():
    """The tests of the version that is installed, from its source package."""
    release = version("limits")
    archive = Path(sys.prefix).parent / f"limits-{release}.tar.gz"
    assert archive.exists(), "bindings/python/run-tests fetches it"
    return archive


def test_the_tests_of_limits_pass(source, tmp_path):
    with tarfile.open(source) as archive:
        prefix = f"{source.name.removesuffix('.tar.gz')}/"
        for member in archive.getmembers():
            name = member.name.removeprefix(prefix)
            # Its conftest starts databases in containers.
            if member.isfile() and name.startswith("tests/") and name != "tests/conftest.py":
                file = tmp_path / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.extractfile(member).read())
    changed = 0
    for file in tmp_path.rglob("*.py"):
        text, count = re.subn(r'"(async\+)?memory://', r'"\1spillgate://', file.read_text())
        file.write_text(text)
        changed += count
    assert changed == 4
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", tmp_path]
    command += ["-p", "simulated_time", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto"]
    command += ["-W", "ignore", "-k", f"not ({ELSEWHERE})", *(f"tests/{name}" for name in MODULES)]
    environment = {**os.environ, "PYTHONPATH": str(SUITE)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    # All of them, and none skipped.
    assert re.search(r"^114 passed, \d+ deselected in", run.stdout, re.MULTILINE), run.stdout
