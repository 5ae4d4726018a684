"""The middleware over a gate whose store is in Redis."""

import pytest
from redis_server import redis_server
from test_asgi import call as call_asgi
from test_asgi import echo as asgi_app
from test_asgi import eventually
from test_wsgi import call as call_wsgi
from test_wsgi import echo as wsgi_app

from spillgate import Gate
from spillgate.asgi import SpillgateMiddleware as Asgi
from spillgate.wsgi import SpillgateMiddleware as Wsgi

POLICY = """
[[limit]]
name = "api"
quota = "4/h"
outage = "closed"

[[limit]]
name = "tokens"
quota = "100/h"
cost = 10
settle = { header = "x-used" }
outage = "closed"
"""
ONE_AT_A_TIME = '[[limit]]\nname = "jobs"\nconcurrent = 1\n'


@pytest.fixture
def redis():
    with redis_server() as started:
        yield started


def over_asgi(gate, app=asgi_app):
    middleware = Asgi(app, gate)
    return lambda: call_asgi(middleware)[0]["status"]


def over_wsgi(gate, app=wsgi_app):
    middleware = Wsgi(app, gate)
    return lambda: call_wsgi(middleware)[0]


def test_processes_share_what_was_spent(redis):
    url, end = redis
    with Gate(POLICY, redis=url) as first, Gate(POLICY, redis=url) as second:
        assert not first.in_process
        requests = [over_asgi(first), over_wsgi(second)] * 3
        assert [request() for request in requests] == [200, 200, 200, 200, 429, 429]


def test_permits_come_back_for_other_processes(redis):
    url, end = redis
    with Gate(ONE_AT_A_TIME, redis=url) as first, Gate(ONE_AT_A_TIME, redis=url) as second:
        held = first.decide(peer="203.0.113.7")
        requests = [over_asgi(second), over_wsgi(second)] * 2
        assert held.allowed and [request() for request in requests] == [429] * 4
        held.release()
        for request in requests:
            # They are released in the background.
            eventually(lambda: request() == 200)


def test_the_response_settles_the_cost(redis):
    url, end = redis

    async def asgi_service(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-used", b"2")]})
        await send({"type": "http.response.body", "body": b""})

    def wsgi_service(environ, start_response):
        start_response("200 OK", [("x-used", "3"), ("content-type", "text/plain")])
        return [b""]

    with Gate(POLICY, redis=url) as gate:
        assert [over_asgi(gate, asgi_service)(), over_wsgi(gate, wsgi_service)()] == [200, 200]
        assert gate.peek_limit("tokens", ["203.0.113.7"], 0).remaining == 95


def test_an_outage_is_a_refusal_and_no_exception(redis):
    url, end = redis
    with Gate(POLICY, redis=url) as gate:
        assert over_asgi(gate)() == 200
        end()
        for request in (over_asgi(gate), over_wsgi(gate)):
            assert request() in (429, 503)
