"""The WSGI middleware under Flask, Django and real servers."""

import http.client
import io
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.validate import validator

import pytest
from django_site import wsgi_application
from flask import Flask, Response
from test_asgi import FaultyGate

from spillgate import Gate, Limiter, ManualClock, SpillgateError
from spillgate.wsgi import SpillgateMiddleware

TWO_PER_MINUTE = '[[limit]]\nname = "api"\nquota = "2/min"\n'
ONE_AT_A_TIME = '[[limit]]\nname = "jobs"\nconcurrent = 1\nper = "global"\n'
PROBLEM = "application/problem+json"


@pytest.fixture
def clock():
    return ManualClock()


def echo(environ, start_response):
    start_response("200 OK", [("content-type", "text/plain")])
    return [b"hello"]


def environment(**changes):
    environ = {
        "REQUEST_METHOD": "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/",
        "QUERY_STRING": "",
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "203.0.113.7",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        **changes,
    }
    return {name: value for name, value in environ.items() if value is not None}


def call(app, **changes):
    """Status, headers and body of one request, as a careful server sees them."""
    started = []

    def start_response(status, headers, exc_info=None):
        started[:] = [int(status[:3]), headers]
        return lambda data: None

    body = validator(app)(environment(**changes), start_response)
    try:
        content = b"".join(body)
    finally:
        body.close()
    return started[0], started[1], content


def statuses(app, count, **changes):
    return [call(app, **changes)[0] for _ in range(count)]


def flask(**middleware):
    app = Flask(__name__)
    app.wsgi_app = SpillgateMiddleware(app.wsgi_app, **middleware)
    app.add_url_rule("/", "hello", lambda: "hello")
    return app


def test_flask_refuses_with_headers_and_a_problem_document(clock):
    client = flask(gate=Gate(TWO_PER_MINUTE, clock=clock)).test_client()
    first, second, third = (client.get("/") for _ in range(3))
    assert (first.status_code, second.status_code, third.status_code) == (200, 200, 429)
    assert first.text == "hello"
    assert first.headers["RateLimit-Policy"] == '"api";q=2;w=60'
    assert [r.headers["RateLimit"] for r in (first, second)] == ['"api";r=1;t=30', '"api";r=0;t=60']
    assert third.headers["Retry-After"] == "30"
    assert third.headers["Content-Type"] == PROBLEM
    assert third.headers["Content-Length"] == str(len(third.data))
    assert third.json["violated-policies"] == ["api"]
    clock.advance(30)
    assert client.get("/").status_code == 200


def test_django_is_limited_per_client_address(clock):
    app = SpillgateMiddleware(wsgi_application(), limiter=Limiter("1/min", clock=clock))
    addresses = ["203.0.113.1", "203.0.113.2", "203.0.113.1"]
    answers = [call(app, REMOTE_ADDR=address, PATH_INFO="/hello/") for address in addresses]
    assert [answer[0] for answer in answers] == [200, 200, 429]
    assert answers[0][2] == b"hello"


def test_a_real_server_is_limited():
    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    app = validator(SpillgateMiddleware(validator(echo), gate=TWO_PER_MINUTE))
    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        seen = []
        for _ in range(3):
            connection.request("GET", "/")
            response = connection.getresponse()
            response.read()
            seen.append(response.status)
        assert seen == [200, 200, 429] and response.getheader("content-type") == PROBLEM
        connection.close()
        server.shutdown()


def test_gunicorn_workers_forked_from_one_process_each_limit(tmp_path):
    listener = socket.create_server(("127.0.0.1", 0))
    command = [sys.executable, "-m", "gunicorn", "wsgi_site:app", "-b", f"fd://{listener.fileno()}"]
    # Loaded before the fork, as a site does that shares memory among its workers.
    command += ["--preload", "-w", "2", "--threads", "2", "--worker-tmp-dir", str(tmp_path)]
    with listener, (tmp_path / "log").open("wb+") as log:
        descriptors = [listener.fileno()]
        server = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=log, stderr=log, pass_fds=descriptors)
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            until_ready(url, server, log)
            seen = [status_of(url) for _ in range(40)]
        finally:
            server.terminate()
            server.wait(60)
    # Each worker admits 5 per hour: counts are per process unless a gate has a shared store.
    assert set(seen) == {200, 429} and 4 <= seen.count(200) <= 10


def until_ready(url, server, log):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        try:
            return status_of(url)
        except OSError:
            time.sleep(0.02)
    log.seek(0)
    raise AssertionError(f"gunicorn did not start:\n{log.read().decode()}")


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_permits_are_held_until_the_body_is_closed():
    gate = Gate(ONE_AT_A_TIME)
    app = Flask(__name__)
    app.wsgi_app = SpillgateMiddleware(app.wsgi_app, gate)

    @app.get("/")
    def stream():
        return Response(iter([b"first", b"last"]))

    def begin():
        started = []
        body = app.wsgi_app(environment(), lambda status, *rest: started.append(status))
        return started[0], body

    status, body = begin()
    assert status == "200 OK" and begin()[0].startswith("429")
    chunks = iter(body)
    assert next(chunks) == b"first" and begin()[0].startswith("429")
    # A server closes the body also if the client has gone.
    body.close()
    status, body = begin()
    assert status == "200 OK" and b"".join(body) == b"firstlast"
    assert begin()[0] == "200 OK"


def test_permits_come_back_after_an_error():
    gate = Gate(ONE_AT_A_TIME)

    def at_once(environ, start_response):
        raise RuntimeError("broken")

    def later(environ, start_response):
        raise RuntimeError("broken")
        yield b""

    for broken in (at_once, later):
        app = SpillgateMiddleware(broken, gate)
        for _ in range(3):
            with pytest.raises(RuntimeError):
                b"".join(app(environment(), lambda *args: None))


def test_a_body_without_permits_stays_as_it_is():
    body = [b"hello"]
    app = SpillgateMiddleware(lambda environ, start: start("200 OK", []) and body or body, TWO_PER_MINUTE)
    assert app(environment(), lambda *args: None) is body


def test_a_shaper_delays_and_an_interrupted_wait_gives_its_turn_back(monkeypatch, clock):
    text = '[[limit]]\nname = "s"\nquota = "1/min burst 3"\nalgorithm = "leaky-shaper"\n'
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("spillgate.wsgi.time.sleep", sleep)
    app = SpillgateMiddleware(echo, Gate(text, clock=clock))
    assert statuses(app, 2) == [200, 200]
    with pytest.raises(KeyboardInterrupt):
        call(app)
    assert statuses(app, 1) == [200]
    assert slept == [60, 120, 120]


def test_the_response_settles_the_cost(clock):
    text = '[[limit]]\nname = "api"\nquota = "10/min"\ncost = 5\nsettle = { header = "x-used" }\n'

    def service(environ, start_response):
        start_response("200 OK", [("X-Used", "2"), ("content-type", "text/plain")])
        return [b""]

    app = SpillgateMiddleware(service, Gate(text, clock=clock))
    left = [dict(call(app)[1])["x-ratelimit-remaining"] for _ in range(3)]
    assert left == ["8", "6", "4"]


def test_the_path_is_what_the_application_sees():
    text = '[[limit]]\nname = "login"\nquota = "1/min"\nmatch = { path = "/api/caf%C3%A9" }\n'
    app = SpillgateMiddleware(echo, text)
    café = "/café".encode().decode("latin-1")
    assert statuses(app, 2, SCRIPT_NAME="/api", PATH_INFO=café) == [200, 429]
    assert statuses(app, 2, PATH_INFO=f"/api{café}") == [429, 429]
    assert statuses(app, 2, PATH_INFO=café) == [200, 200]
    assert statuses(app, 2, PATH_INFO="/%2F?x#y") == [200, 200]


@pytest.mark.parametrize("peer", [None, "", "unix:", "::1%lo"])
def test_a_peer_without_an_address_is_limited_all_the_same(peer):
    for middleware in ({"gate": TWO_PER_MINUTE}, {"limiter": "2/min"}):
        app = SpillgateMiddleware(echo, **middleware)
        assert statuses(app, 3, REMOTE_ADDR=peer) == [200, 200, 429]


def test_headers_are_latin_1_as_servers_decode_them():
    text = '[[limit]]\nname = "team"\nquota = "1/min"\nper = "header:x-team"\n'
    app = SpillgateMiddleware(echo, text)
    for team in ("blue", "blüe", "\xff\xfe", "команда".encode().decode("latin-1")):
        assert statuses(app, 2, HTTP_X_TEAM=team) == [200, 429], team


@pytest.mark.parametrize("value", ["1\r\nx-b: 2", "команда", "\0", "\ud800"])
def test_a_request_that_cannot_be_read_gets_a_400(value):
    status, headers, body = call(SpillgateMiddleware(echo, TWO_PER_MINUTE), HTTP_X_A=value)
    assert status == 400 and dict(headers)["content-type"] == PROBLEM
    assert json.loads(body)["status"] == 400


def test_a_fault_of_the_gate_is_no_fault_of_the_client(caplog):
    closed, opened = (SpillgateMiddleware(echo, TWO_PER_MINUTE, on_error=way) for way in ("raise", "allow"))
    closed.gate = opened.gate = FaultyGate()
    with pytest.raises(SpillgateError):
        call(closed)
    assert statuses(opened, 1) == [200]
    assert "fault of the gate" in caplog.text


def test_a_response_that_cannot_be_read_is_the_servers_to_refuse(caplog):
    def odd(environ, start_response):
        start_response("odd", [("x y", "1")])
        return [b""]

    started = []
    SpillgateMiddleware(odd, TWO_PER_MINUTE)(environment(), lambda *args: started.append(args))
    assert started[0][0] == "odd" and ("x y", "1") in started[0][1]
    assert "the cost stands" in caplog.text


def test_head_gets_no_body():
    app = SpillgateMiddleware(echo, limiter="1/min")
    call(app)
    assert call(app, REQUEST_METHOD="HEAD")[::2] == (429, b"")


def test_keys_may_be_chosen_per_request():
    app = SpillgateMiddleware(echo, limiter="1/min", key=lambda environ: environ.get("HTTP_X_TENANT"))
    assert statuses(app, 2, HTTP_X_TENANT="a") == [200, 429]
    assert statuses(app, 2, HTTP_X_TENANT="b") == [200, 429]
    # None: this request is not limited.
    assert statuses(app, 2) == [200, 200]


class Broken(Exception):
    pass


def raises(environ):
    raise Broken("key")


@pytest.mark.parametrize(("key", "error"), [(raises, Broken), (lambda environ: [], TypeError)])
def test_an_error_in_a_key_function_is_a_500_unless_requests_pass_then(key, error, caplog):
    with pytest.raises(error):
        call(SpillgateMiddleware(echo, limiter="1/min", key=key))
    opened = SpillgateMiddleware(echo, limiter="1/min", key=key, on_error="allow")
    assert statuses(opened, 2) == [200, 200]
    assert error.__name__ in caplog.text


def test_threads_together_get_exactly_the_limit():
    app = SpillgateMiddleware(echo, limiter="100/h")
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.extend(statuses(app, 10))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (seen.count(200), seen.count(429)) == (100, 100)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "pass either gate or limiter"),
        ({"gate": TWO_PER_MINUTE, "key": raises}, "key belongs to limiter"),
        ({"limiter": "1/s", "on_error": "ignore"}, 'use "raise" or "allow"'),
    ],
)
def test_wrong_arguments_say_what_would_be_right(arguments, says):
    with pytest.raises((TypeError, ValueError), match=says):
        SpillgateMiddleware(echo, **arguments)
