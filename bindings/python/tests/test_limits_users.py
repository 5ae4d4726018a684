"""flask-limiter and slowapi with nothing but the storage URI changed."""

import subprocess
import sys

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from flask import Flask
from flask_limiter import Limiter as FlaskLimiter
from flask_limiter.util import get_remote_address
from slowapi import Limiter as SlowLimiter
from slowapi import _rate_limit_exceeded_handler
from slowapi.errors import RateLimitExceeded
from slowapi.middleware import SlowAPIMiddleware

from spillgate.limits import SpillgateStorage

PROGRAMS = {
    "limits": "from limits.storage import storage_from_string\nstorage = storage_from_string('spillgate://')",
    "limits, async": "from limits.storage import storage_from_string\n"
    "storage = storage_from_string('async+spillgate://')",
    "flask-limiter": "from flask import Flask\nfrom flask_limiter import Limiter\n"
    "storage = Limiter(lambda: 'a', app=Flask('a'), storage_uri='spillgate://').storage",
    "slowapi": "from slowapi import Limiter\n"
    "storage = Limiter(lambda request: 'a', storage_uri='spillgate://')._storage",
}


def run(text):
    """What a program of its own prints."""
    command = [sys.executable, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_change_nothing_but_the_uri(program):
    assert run(f"{program}\nprint(type(storage).__module__)") == "spillgate.limits"


def test_programs_without_limits_import_nothing_of_the_package():
    assert run("import json, sys\nprint('spillgate' in sys.modules)") == "False"


def test_limits_imports_as_ever_without_the_package():
    broken = "import sys\nsys.modules['spillgate'] = None\nimport limits\n"
    seen = "print(type(limits.__loader__).__name__, limits.parse('1/second'))"
    assert run(broken + seen) == "SourceFileLoader 1 per 1 second"


def test_an_import_leaves_the_list_of_finders_alone():
    watch = (
        "import sys\nbefore = list(sys.meta_path)\nseen = []\n"
        "class Watch:\n    @staticmethod\n    def find_spec(name, path=None, target=None):\n"
        "        if name == 'limits':\n            seen.append(list(sys.meta_path) == [*before, Watch])\n"
        "sys.meta_path.append(Watch)\n"
        # Found by nobody before it.
        "import importlib.machinery\nimportlib.machinery.PathFinder.find_spec = lambda *arguments: None\n"
    )
    assert run(watch + "try:\n    import limits\nexcept ImportError:\n    print(seen)") == "[True, True]"


STRATEGIES = ["fixed-window", "moving-window", "sliding-window-counter"]


@pytest.fixture(autouse=True)
def still_clock(monkeypatch):
    """No window ends during a test."""
    monkeypatch.setattr("time.time", lambda: 1_700_000_010.0)


def flask_responses(uri, strategy):
    app = Flask(__name__)
    app.config["RATELIMIT_HEADERS_ENABLED"] = True
    limiter = FlaskLimiter(
        get_remote_address,
        app=app,
        default_limits=["50 per hour"],
        storage_uri=uri,
        strategy=strategy,
    )

    @app.get("/default")
    def default():
        return "default"

    @app.get("/slow")
    @limiter.limit("3 per minute")
    def slow():
        return "slow"

    @app.get("/costly")
    @limiter.limit("10/minute", cost=4)
    def costly():
        return "costly"

    client = app.test_client()
    paths = ["/slow"] * 5 + ["/costly"] * 4 + ["/default"] * 52
    responses = [client.get(path) for path in paths]
    seen = [(r.status_code, r.headers.get("X-RateLimit-Remaining")) for r in responses]
    storage = limiter.storage
    limiter.reset()
    return seen, client.get("/slow").status_code, storage


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_flask_limiter_answers_as_with_memory(strategy):
    expected, after_reset, _ = flask_responses("memory://", strategy)
    seen, ours_after_reset, storage = flask_responses("spillgate://", strategy)
    assert isinstance(storage, SpillgateStorage)
    assert seen == expected and ours_after_reset == after_reset == 200
    statuses = [status for status, _ in seen]
    assert statuses[:5] == [200, 200, 200, 429, 429]
    assert statuses[5:9] == [200, 200, 429, 429]
    assert statuses[9:].count(200) == 50


def slowapi_responses(uri, strategy):
    limiter = SlowLimiter(
        key_func=lambda request: request.headers["x-user"],
        default_limits=["5/minute"],
        storage_uri=uri,
        strategy=strategy,
        headers_enabled=True,
    )
    app = FastAPI()
    app.state.limiter = limiter
    app.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)
    app.add_middleware(SlowAPIMiddleware)

    @app.get("/default")
    async def default(request: Request):
        return "default"

    client = TestClient(app)
    users = ["ann", "bob"] * 7
    responses = [client.get("/default", headers={"x-user": user}) for user in users]
    seen = [(r.status_code, r.headers.get("X-RateLimit-Remaining")) for r in responses]
    return seen, limiter._storage


@pytest.mark.parametrize("strategy", ["fixed-window", "moving-window"])
def test_slowapi_answers_as_with_memory(strategy):
    expected, _ = slowapi_responses("memory://", strategy)
    seen, storage = slowapi_responses("spillgate://", strategy)
    assert isinstance(storage, SpillgateStorage)
    assert seen == expected
    assert [status for status, _ in seen].count(200) == 10
