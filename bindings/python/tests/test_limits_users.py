"""flask-limiter and slowapi with nothing but the storage URI changed."""

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

import spillgate.limits  # noqa: F401
from spillgate.limits import SpillgateStorage

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
