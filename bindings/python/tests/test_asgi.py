"""The ASGI middleware under Starlette, FastAPI, Django and a real server."""

import asyncio
import contextlib
import json
import random
import socket
import threading

import httpx2
import pytest
import uvicorn
from django_site import asgi_application
from fastapi import BackgroundTasks, FastAPI, WebSocket
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as websocket_connect

from spillgate import Gate, Limiter, ManualClock, Policy, SpillgateError
from spillgate.asgi import SpillgateMiddleware

TWO_PER_MINUTE = '[[limit]]\nname = "api"\nquota = "2/min"\n'
ONE_AT_A_TIME = '[[limit]]\nname = "jobs"\nconcurrent = 1\nper = "global"\n'
PROBLEM = "application/problem+json"


@pytest.fixture
def clock():
    return ManualClock()


async def hello(request):
    return PlainTextResponse("hello")


def starlette(*routes, **middleware):
    app = Starlette(routes=[*routes, Route("/", hello)])
    app.add_middleware(SpillgateMiddleware, **middleware)
    return app


def call(app, method="GET", path="/", headers=(), client=("203.0.113.7", 1), **scope):
    """The messages that an application sends for one request."""
    sent = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "query_string": b"",
        "headers": list(headers),
        "client": client,
        **scope,
    }

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


async def echo(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def statuses(app, count, **request):
    return [call(app, **request)[0]["status"] for _ in range(count)]


def test_starlette_refuses_with_headers_and_a_problem_document(clock):
    client = TestClient(starlette(gate=Gate(TWO_PER_MINUTE, clock=clock)))
    first, second, third = (client.get("/") for _ in range(3))
    assert (first.status_code, second.status_code, third.status_code) == (200, 200, 429)
    assert first.text == "hello"
    assert first.headers["ratelimit-policy"] == '"api";q=2;w=60'
    assert [r.headers["ratelimit"] for r in (first, second)] == ['"api";r=1;t=30', '"api";r=0;t=60']
    assert third.headers["retry-after"] == "30"
    assert third.headers["content-type"] == PROBLEM
    assert third.headers["content-length"] == str(len(third.content))
    assert third.json()["violated-policies"] == ["api"]
    clock.advance(30)
    assert client.get("/").status_code == 200


def test_fastapi_takes_a_policy_file(tmp_path):
    (tmp_path / "spillgate.toml").write_text(TWO_PER_MINUTE)
    app = FastAPI()
    app.add_middleware(SpillgateMiddleware, gate=Policy.load(tmp_path / "spillgate.toml"))

    @app.get("/items/{item}")
    def item(item: int):
        return {"item": item}

    client = TestClient(app)
    assert [client.get(f"/items/{n}").status_code for n in range(3)] == [200, 200, 429]


def test_django_is_limited_per_client_address():
    app = SpillgateMiddleware(asgi_application(), limiter=Limiter("1/min", clock=ManualClock()))

    async def get(address):
        transport = httpx2.ASGITransport(app, client=(address, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
            return (await client.get("/hello/")).status_code

    addresses = ["203.0.113.1", "203.0.113.2", "203.0.113.1"]
    assert [asyncio.run(get(address)) for address in addresses] == [200, 200, 429]


def test_a_real_server_holds_permits_until_the_body_has_ended():
    gate = Gate(ONE_AT_A_TIME)
    held, go_on = threading.Event(), threading.Event()

    async def slow(request):
        async def body():
            yield b"first"
            held.set()
            await asyncio.to_thread(go_on.wait, 60)
            yield b"last"

        return StreamingResponse(body())

    app = starlette(Route("/slow", slow), gate=gate)
    with serve(app) as url, httpx2.Client(timeout=60) as client:
        with client.stream("GET", f"{url}/slow") as response:
            assert response.status_code == 200 and held.wait(60)
            refused = client.get(url)
            assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
            go_on.set()
            assert response.read() == b"firstlast"
        eventually(lambda: client.get(url).status_code == 200)
        # A client that goes away in the middle gives its permit back, too.
        held.clear(), go_on.clear()
        with client.stream("GET", f"{url}/slow"):
            assert held.wait(60)
        go_on.set()
        eventually(lambda: client.get(url).status_code == 200)


@contextlib.contextmanager
def serve(app):
    """The application under uvicorn, on a free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        eventually(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def eventually(condition):
    """Waits for what another thread is about to do."""
    for _ in range(6000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("not after a minute")


def test_permits_come_back_after_an_error_and_before_background_tasks():
    gate = Gate(ONE_AT_A_TIME)
    app = FastAPI()
    app.add_middleware(SpillgateMiddleware, gate=gate)
    during = []

    @app.get("/fails")
    async def fails():
        raise RuntimeError("broken")

    @app.get("/background")
    async def background(tasks: BackgroundTasks):
        tasks.add_task(lambda: during.append(gate.decide().allowed))

    client = TestClient(app, raise_server_exceptions=False)
    assert [client.get("/fails").status_code for _ in range(3)] == [500] * 3
    assert client.get("/background").status_code == 200 and during == [True]


def test_permits_come_back_if_a_request_is_cancelled():
    gate = Gate(ONE_AT_A_TIME)

    async def hang(scope, receive, send):
        await asyncio.Event().wait()

    async def main():
        app = SpillgateMiddleware(hang, gate)
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": None}
        request = asyncio.ensure_future(app(scope, None, None))
        await asyncio.sleep(0)
        assert not gate.decide().allowed
        request.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await request
        return gate.decide().allowed

    assert asyncio.run(main())


def test_a_shaper_delays_and_a_cancelled_wait_gives_its_turn_back(monkeypatch, clock):
    text = '[[limit]]\nname = "s"\nquota = "1/min burst 3"\nalgorithm = "leaky-shaper"\n'
    slept, real = [], asyncio.sleep

    async def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 2:
            raise asyncio.CancelledError
        await real(0)

    monkeypatch.setattr("spillgate.asgi.asyncio.sleep", sleep)
    app = SpillgateMiddleware(echo, Gate(text, clock=clock))
    assert statuses(app, 2) == [200, 200]
    with pytest.raises(asyncio.CancelledError):
        call(app)
    assert statuses(app, 1) == [200]
    assert slept == [60, 120, 120]


def test_the_response_settles_the_cost(clock):
    text = '[[limit]]\nname = "api"\nquota = "10/min"\ncost = 5\nsettle = { header = "x-used" }\n'
    gate = Gate(text, clock=clock)

    async def service(scope, receive, send):
        headers = [(b"x-used", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    left = [dict(call(SpillgateMiddleware(service, gate))[0]["headers"]) for _ in range(3)]
    assert [headers[b"x-ratelimit-remaining"] for headers in left] == [b"8", b"6", b"4"]


def test_websockets_are_limited_by_their_handshake():
    async def chat(websocket):
        await websocket.accept()
        await websocket.send_text("hello")
        await websocket.receive_text()

    gate = Gate(ONE_AT_A_TIME)
    client = TestClient(starlette(WebSocketRoute("/ws", chat), gate=gate))
    with client.websocket_connect("/ws") as first:
        assert first.receive_text() == "hello"
        with pytest.raises(WebSocketDenialResponse) as refused, client.websocket_connect("/ws"):
            pass
        assert refused.value.status_code == 429
        first.send_text("bye")
    eventually(lambda: gate.decide().allowed)


def test_a_real_server_refuses_a_websocket_and_takes_the_next():
    gate = Gate(ONE_AT_A_TIME)

    async def chat(websocket):
        await websocket.accept()
        await websocket.receive_text()

    app = starlette(WebSocketRoute("/ws", chat), gate=gate)
    with serve(app) as url:
        url = url.replace("http", "ws") + "/ws"
        with websocket_connect(url):
            with pytest.raises(InvalidStatus) as refused, websocket_connect(url):
                pass
            assert refused.value.response.status_code == 429
            assert refused.value.response.headers["retry-after"] == "1"
        # The client has gone without a word to the application.
        eventually(lambda: gate.decide().allowed)
        with websocket_connect(url) as websocket:
            websocket.send("bye")


def test_in_flight_never_exceeds_the_limit_and_every_permit_comes_back():
    gate = Gate(ONE_AT_A_TIME.replace("concurrent = 1", "concurrent = 5"))
    in_flight, most, served = 0, 0, 0
    draw = random.Random(7)

    async def service(scope, receive, send):
        nonlocal in_flight, most, served
        in_flight, served = in_flight + 1, served + 1
        most = max(most, in_flight)
        try:
            for _ in range(draw.randrange(5)):
                await asyncio.sleep(0)
            if draw.random() < 0.3:
                raise Broken("before the head")
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await asyncio.sleep(0)
            if draw.random() < 0.3:
                raise Broken("in the body")
        finally:
            in_flight -= 1
        await send({"type": "http.response.body", "body": b""})

    async def request(app):
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": None}

        async def send(message):
            if draw.random() < 0.1:
                raise OSError("the client has gone")

        await app(scope, None, send)

    async def main():
        app = SpillgateMiddleware(service, gate)
        for _ in range(100):
            tasks = [asyncio.ensure_future(request(app)) for _ in range(20)]
            await asyncio.sleep(0)
            for task in draw.sample(tasks, 5):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())
    assert most == 5 and served > 400
    held = [gate.decide() for _ in range(6)]
    assert [outcome.allowed for outcome in held] == [True] * 5 + [False]


async def closes(scope, receive, send):
    await send({"type": "websocket.close", "code": 1008})


async def declines(scope, receive, send):
    await send({"type": "websocket.http.response.start", "status": 403, "headers": []})
    await send({"type": "websocket.http.response.body", "body": b"no"})


@pytest.mark.parametrize("service", [closes, declines])
def test_a_websocket_that_the_application_refuses_is_settled(clock, service):
    text = '[[limit]]\nname = "a"\nquota = "2/min"\nsettle = { status = [403] }\n'
    gate = Gate(text, clock=clock)
    refused = call(SpillgateMiddleware(service, gate), type="websocket")
    assert gate.peek_limit("a", ["203.0.113.7"]).remaining == 1, "a 403 counts"
    assert (b"ratelimit", b'"a";r=1;t=30') in refused[0].get("headers", []) or service is closes

    free = Gate(text.replace("403", "401"), clock=clock)
    call(SpillgateMiddleware(service, free), type="websocket")
    assert free.peek_limit("a", ["203.0.113.7"]).remaining == 2, "nothing else does"


def test_a_websocket_is_closed_if_the_server_can_send_no_response():
    app = SpillgateMiddleware(echo, limiter=Limiter("1/min burst 1"), key=lambda scope: "k")
    call(app)
    [message] = call(app, type="websocket")
    assert message["type"] == "websocket.close" and message["code"] == 1013


def test_fastapi_websockets_get_headers():
    app = FastAPI()
    app.add_middleware(SpillgateMiddleware, limiter="2/min")

    @app.websocket("/ws")
    async def chat(websocket: WebSocket):
        await websocket.accept(headers=[(b"x-own", b"1")])

    with TestClient(app).websocket_connect("/ws") as websocket:
        assert (b"x-own", b"1") in websocket.extra_headers
        assert (b"ratelimit", b'"default";r=1;t=30') in websocket.extra_headers


def test_lifespan_passes_through():
    events = []

    @contextlib.asynccontextmanager
    async def lifespan(app):
        events.append("start")
        yield
        events.append("stop")

    app = Starlette(routes=[Route("/", hello)], lifespan=lifespan)
    with TestClient(SpillgateMiddleware(app, limiter="1/min")) as client:
        assert client.get("/").status_code == 200
    assert events == ["start", "stop"]


@pytest.mark.parametrize("algorithm", ["token-bucket", "fixed-window", "sliding-window", "interval-bucket"])
@pytest.mark.parametrize("quota", ["2/min burst 3", "3/s", "1/7s", "3/day", "16000/s", "4000000/day"])
def test_a_limiter_writes_the_same_response_as_a_gate(clock, quota, algorithm):
    if "burst" in quota and "window" in algorithm:
        quota = "2/min"
    text = f'[[limit]]\nname = "default"\nquota = "{quota}"\nalgorithm = "{algorithm}"\n'
    gated = SpillgateMiddleware(echo, Gate(text, clock=clock))
    limited = SpillgateMiddleware(echo, limiter=Limiter(quota, algorithm=algorithm, clock=clock))
    for _ in range(5):
        ours, theirs = call(limited), call(gated)
        assert sorted(ours[0]["headers"]) == sorted(theirs[0]["headers"])
        assert ours[0]["status"] == theirs[0]["status"]
        if theirs[0]["status"] == 429:
            assert json.loads(ours[1]["body"]) == json.loads(theirs[1]["body"])
        clock.advance(0.1)


def test_the_path_is_what_the_application_sees():
    text = '[[limit]]\nname = "login"\nquota = "1/min"\nmatch = { path = "/login" }\n'
    for raw in (b"/login", b"/log%69n", b"/%6Cogin", b"/rewritten", None):
        app = SpillgateMiddleware(echo, Gate(text))
        assert statuses(app, 2, path="/login", raw_path=raw) == [200, 429], raw
        assert statuses(app, 2, path="/other") == [200, 200]


@pytest.mark.parametrize("path", ["", "/\ud800", "/\x00", "/ü", "no-slash", "/" + "x" * 100_000])
def test_odd_paths_are_limited(path):
    app = SpillgateMiddleware(echo, TWO_PER_MINUTE)
    assert statuses(app, 3, path=path, raw_path=None)[2] in (400, 429)


def test_mounted_applications_see_the_whole_path():
    text = '[[limit]]\nname = "a"\nquota = "1/min"\nmatch = { path = "/api/x" }\n'
    inner = Starlette(routes=[Route("/x", hello)])
    inner.add_middleware(SpillgateMiddleware, gate=text)
    client = TestClient(Starlette(routes=[Mount("/api", inner)]))
    assert [client.get("/api/x").status_code for _ in range(2)] == [200, 429]


@pytest.mark.parametrize("peer", [None, ("testclient", 1), ("", 0), ("/run/app.sock", None), ["::1%lo", 1]])
def test_a_peer_without_an_address_is_limited_all_the_same(peer):
    for middleware in ({"gate": TWO_PER_MINUTE}, {"limiter": "2/min"}):
        app = SpillgateMiddleware(echo, **middleware)
        assert statuses(app, 3, client=peer) == [200, 200, 429]


def test_addresses_of_one_subscriber_share_a_key():
    app = SpillgateMiddleware(echo, limiter="2/min")
    clients = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"]
    assert [call(app, client=(c, 1))[0]["status"] for c in clients] == [200, 200, 429, 200]
    mapped = ["198.51.100.1", "::ffff:198.51.100.1", "::ffff:198.51.100.1"]
    assert [call(app, client=(c, 1))[0]["status"] for c in mapped] == [200, 200, 429]


def test_headers_are_bytes_of_any_kind():
    text = '[[limit]]\nname = "team"\nquota = "1/min"\nper = "header:x-team"\n'
    app = SpillgateMiddleware(echo, text)
    for team in (b"blue", b"bl\xfce", b"\xff\xfe", "команда".encode()):
        assert statuses(app, 2, headers=[(b"x-team", team)]) == [200, 429], team


@pytest.mark.parametrize(
    "request_",
    [
        {"headers": [(b"x y", b"1")]},
        {"headers": [(b"", b"1")]},
        {"headers": [(b"x-a", b"1\r\nx-b: 2")]},
        {"headers": [(b"x-\xff", b"1")]},
        {"method": "G T"},
    ],
)
def test_a_request_that_cannot_be_read_gets_a_400(request_):
    start, body = call(SpillgateMiddleware(echo, TWO_PER_MINUTE), **request_)
    assert start["status"] == 400 and (b"content-type", PROBLEM.encode()) in start["headers"]
    assert json.loads(body["body"])["status"] == 400


def test_headers_may_be_pairs_of_any_kind():
    app = SpillgateMiddleware(echo, '[[limit]]\nname = "team"\nquota = "1/min"\nper = "header:x-team"\n')
    for index, pair in enumerate([tuple, list, iter]):
        team = b"team-%d" % index
        assert [call(app, headers=[pair((b"x-team", team))])[0]["status"] for _ in range(2)] == [200, 429]
    for wrong in ([b"x-team"], [b"x-team", b"a", b"b"]):
        assert statuses(app, 1, headers=[wrong]) == [400]


class FaultyGate:
    in_process = True

    def decide(self, **request):
        raise SpillgateError("fault of the gate")


def test_a_fault_of_the_gate_is_no_fault_of_the_client(caplog):
    closed, opened = (SpillgateMiddleware(echo, TWO_PER_MINUTE, on_error=way) for way in ("raise", "allow"))
    closed.gate = opened.gate = FaultyGate()
    with pytest.raises(SpillgateError):
        call(closed)
    assert statuses(opened, 1) == [200]
    assert "fault of the gate" in caplog.text


def test_a_response_that_cannot_be_read_is_the_servers_to_refuse(caplog):
    async def odd(scope, receive, send):
        await send({"type": "http.response.start", "status": 99, "headers": [(b"x y", b"1")]})
        await send({"type": "http.response.body", "body": b""})

    start, _ = call(SpillgateMiddleware(odd, TWO_PER_MINUTE))
    assert start["status"] == 99 and (b"x y", b"1") in start["headers"]
    assert "the cost stands" in caplog.text


def test_head_gets_no_body():
    app = SpillgateMiddleware(echo, limiter="1/min")
    call(app)
    start, body = call(app, method="HEAD")
    assert start["status"] == 429 and body["body"] == b""


def test_keys_may_be_chosen_per_request_and_asynchronously():
    async def tenant(scope):
        return dict(scope["headers"]).get(b"x-tenant")

    for key in (tenant, lambda scope: dict(scope["headers"]).get(b"x-tenant")):
        app = SpillgateMiddleware(echo, limiter="1/min", key=key)
        assert statuses(app, 2, headers=[(b"x-tenant", b"a")]) == [200, 429]
        assert statuses(app, 2, headers=[(b"x-tenant", b"b")]) == [200, 429]
        # None: this request is not limited.
        assert statuses(app, 2) == [200, 200]


class Broken(Exception):
    pass


def raises(scope):
    raise Broken("key")


@pytest.mark.parametrize(("key", "error"), [(raises, Broken), (lambda scope: [], TypeError)])
def test_an_error_in_a_key_function_is_a_500_unless_requests_pass_then(key, error, caplog):
    closed = SpillgateMiddleware(echo, limiter="1/min", key=key)
    with pytest.raises(error):
        call(closed)
    app = starlette(limiter="1/min", key=key)
    assert TestClient(app, raise_server_exceptions=False).get("/").status_code == 500
    opened = SpillgateMiddleware(echo, limiter="1/min", key=key, on_error="allow")
    assert statuses(opened, 2) == [200, 200]
    assert error.__name__ in caplog.text


def test_the_stricter_of_two_limits_is_shown():
    def service(remaining):
        async def app(scope, receive, send):
            own = [(b"X-RateLimit-Limit", b"100"), (b"X-RateLimit-Remaining", remaining)]
            await send({"type": "http.response.start", "status": 200, "headers": own})
            await send({"type": "http.response.body", "body": b""})

        return app

    def shown(remaining, **middleware):
        [start, _] = call(SpillgateMiddleware(service(remaining), **middleware))
        names = [name.lower() for name, _ in start["headers"]]
        assert len(names) == len(set(names))
        return {name.lower(): value for name, value in start["headers"]}

    limited = {"limiter": "10/min"}
    assert shown(b"3", **limited)[b"x-ratelimit-limit"] == b"100"
    for remaining in (b"50", b"many"):
        assert shown(remaining, **limited)[b"x-ratelimit-limit"] == b"10"
        assert shown(remaining, **limited)[b"x-ratelimit-remaining"] == b"9"
    silent = Gate(TWO_PER_MINUTE, headers=["rate-limit"])
    assert shown(b"3", gate=silent)[b"x-ratelimit-limit"] == b"100"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "pass either gate or limiter"),
        ({"gate": TWO_PER_MINUTE, "limiter": "1/s"}, "pass either gate or limiter"),
        ({"gate": TWO_PER_MINUTE, "key": raises}, "key belongs to limiter"),
        ({"limiter": "1/s", "on_error": "ignore"}, 'use "raise" or "allow"'),
        ({"limiter": "fast"}, "fast"),
        ({"gate": "[[limit]]"}, "name"),
    ],
)
def test_wrong_arguments_say_what_would_be_right(arguments, says):
    with pytest.raises((TypeError, ValueError), match=says):
        SpillgateMiddleware(echo, **arguments)


def test_json_responses_stay_as_they_are():
    async def data(request):
        return JSONResponse({"a": 1})

    response = TestClient(starlette(Route("/data", data), limiter="5/s")).get("/data")
    assert response.json() == {"a": 1} and response.headers["content-type"] == "application/json"
