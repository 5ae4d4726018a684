"""The clients against the real server, and against servers that do not behave."""

import asyncio
import contextlib
import json
import logging
import os
import socket
import ssl
import subprocess
import threading

import pytest
from server import POLICY, Scripted, Spillgate, nobody

from spillgate.client import AsyncClient, Client, ServerError, ServerUnavailable

#: Long enough for a busy machine to answer.
PATIENT = 30


class Both:
    """Calls the asynchronous client as if it were the other, each time in the same loop."""

    def __init__(self, *args, **settings):
        self._client = AsyncClient(*args, **settings)
        self._loop = asyncio.new_event_loop()

    def __getattr__(self, name):
        method = getattr(self._client, name)
        if not asyncio.iscoroutinefunction(method):
            return method
        return lambda *args, **kwargs: self._loop.run_until_complete(method(*args, **kwargs))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._loop.run_until_complete(self._client.close())
        self._loop.close()


@pytest.fixture(params=[Client, Both], ids=["sync", "async"])
def connect(request):
    with contextlib.ExitStack() as stack:
        yield lambda *args, **settings: stack.enter_context(request.param(*args, **settings))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Spillgate(tmp_path_factory.mktemp("server"), POLICY) as server:
        yield server


@pytest.fixture
def key(request):
    return request.node.name


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_limit_is_spent_and_denies(server, connect, key):
    client = connect(server.url, timeout=PATIENT, on_failure="raise")
    answers = [client.check("login", key) for _ in range(6)]
    assert [answer.allowed for answer in answers] == [True] * 5 + [False]
    assert [answer.remaining for answer in answers] == [4, 3, 2, 1, 0, 0]
    assert answers[0].limit == "login" and answers[0].max == 5 and answers[0].failure is None
    assert answers[0].retry_after == 0 and 0 < answers[5].retry_after <= 12
    assert not answers[5]


def test_a_cost_that_never_fits_has_no_time_to_retry(server, connect, key):
    answer = connect(server.url, timeout=PATIENT).check("login", key, 6)
    assert not answer.allowed and answer.retry_after is None and answer.failure is None


def test_several_limits_are_spent_together_or_not_at_all(server, connect, key):
    client = connect(server.url, timeout=PATIENT, on_failure="raise")
    assert client.check_all([("login", key, 5), ("api", "203.0.113.1")]).allowed
    before = client.check("api", "203.0.113.2", 0).remaining
    denied = client.check_all([("api", "203.0.113.2"), ("login", key)])
    assert not denied.allowed and denied.limit == "login"
    assert client.check("api", "203.0.113.2", 0).remaining == before


def test_a_request_is_decided_by_the_servers_policy(server, connect):
    client = connect(server.url, timeout=PATIENT, on_failure="raise")
    answer = client.check_request(
        "/users/7", host="example.com", headers={"x-a": "1", "x-b": ["2", "3"]}, ip="203.0.113.9"
    )
    assert answer.allowed and answer.limit == "api"
    assert [limit["limit"] for limit in answer.limits] == ["api"]


def test_a_limit_with_several_parts_takes_a_list(server, connect):
    client = connect(server.url, timeout=PATIENT, on_failure="raise")
    assert client.check("parts", ["203.0.113.1", "blue"]).allowed
    assert client.check("everyone").allowed


@pytest.mark.parametrize(
    ("limit", "key", "status", "says"),
    [
        ("apo", "k", 404, 'there is no limit "apo"; did you mean "api"?'),
        ("login", "k" * 1025, 400, ""),
        ("login", "\ud800", 400, ""),
        ("everyone", "k", 400, ""),
    ],
)
def test_a_wrong_question_raises_whatever_the_failure_policy(server, connect, limit, key, status, says):
    with pytest.raises(ServerError) as error:
        connect(server.url, timeout=PATIENT).check(limit, key)
    assert error.value.status == status and says in str(error.value)


def test_connections_are_reused(connect):
    with Scripted(allowed(), keep_alive=True) as server:
        client = connect(server.url, timeout=PATIENT, on_failure="raise")
        for _ in range(5):
            client.check("api", "k")
        assert server.connections == 1 and len(server.requests) == 5


def test_a_connection_closed_while_idle_is_replaced(connect):
    with Scripted(allowed(), keep_alive=False) as server:
        client = connect(server.url, timeout=PATIENT, on_failure="raise")
        for _ in range(3):
            client.check("api", "k")
        assert server.connections == 3


def test_after_a_failure_no_idle_connection_is_trusted():
    with Scripted(allowed()) as server:
        client = Client(server.url, timeout=PATIENT, clock=Clock())
        barrier = threading.Barrier(4)
        server.before_response = barrier.wait
        threads = [threading.Thread(target=client.check, args=("api", "k")) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.before_response = lambda: None
        assert len(client._idle) == 4
        server.response = b"garbage"
        assert client.check("api", "k").failure and not client._idle


def test_threads_share_a_client(server, key):
    client = Client(server.url, timeout=PATIENT, on_failure="raise")
    admitted = []

    def check():
        admitted.extend(1 for _ in range(5) if client.check("login", key))

    threads = [threading.Thread(target=check) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert len(admitted) == 5


def test_tasks_share_a_client(server, key):
    async def main():
        async with AsyncClient(server.url, timeout=PATIENT, on_failure="raise") as client:
            return await asyncio.gather(*(client.check("login", key) for _ in range(40)))

    assert sum(answer.allowed for answer in asyncio.run(main())) == 5


def test_an_asynchronous_client_outlives_its_loop(server, key):
    client = AsyncClient(server.url, timeout=PATIENT, on_failure="raise")
    for _ in range(2):
        assert asyncio.run(client.check("login", key)).allowed


def test_a_child_of_a_fork_has_connections_of_its_own(server, key):
    client = Client(server.url, timeout=PATIENT, on_failure="raise")
    assert client.check("login", key)
    child = os.fork()
    if child == 0:
        ok = client.check("login", key).remaining == 3
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert client.check("login", key).remaining == 2
    client.close()


def test_tls_is_spoken_and_checked(connect, tmp_path, key):
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    files = ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "certificate.pem"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
    tls = '[server]\ntls-cert = "certificate.pem"\ntls-key = "key.pem"\n'
    trusting = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
    with Spillgate(tmp_path, POLICY + tls) as server:
        settings = {"timeout": PATIENT, "on_failure": "raise"}
        client = connect(server.url, ssl_context=trusting, **settings)
        assert [client.check("login", key).remaining for _ in range(3)] == [4, 3, 2]
        with pytest.raises(ServerUnavailable, match="certificate verify failed"):
            connect(server.url, **settings).check("login", key)
        plain = connect(server.url.replace("https", "http"), **settings)
        with pytest.raises(ServerUnavailable):
            plain.check("login", key)


def test_a_token_is_sent(connect):
    with Scripted(allowed()) as server:
        connect(server.url, token="s3cret", timeout=PATIENT, on_failure="raise").check("api", "k")
        assert b"\r\nauthorization: Bearer s3cret\r\n" in server.requests[0]


@pytest.mark.parametrize(("on_failure", "passes"), [("allow", True), ("deny", False)])
def test_without_a_server_the_failure_policy_answers(connect, on_failure, passes):
    with nobody() as address:
        answer = connect(f"http://{address}", on_failure=on_failure).check("api", "k")
    assert answer.allowed is passes and "Errno" in answer.failure


def test_without_a_server_a_client_may_raise(connect):
    with nobody() as address, pytest.raises(ServerUnavailable, match="does not answer"):
        connect(f"http://{address}", on_failure="raise").check("api", "k")


def test_a_dead_server_is_left_alone_and_then_tried_by_one_call(connect, caplog):
    caplog.set_level(logging.INFO, "spillgate.client")
    clock = Clock()
    with Scripted(b"", keep_alive=False) as server:
        client = connect(server.url, timeout=PATIENT, clock=clock, max_pause=1.0)
        seen = []
        for _ in range(60):
            client.check("api", "k")
            seen.append(server.connections)
            clock.now += 0.05
        # After pauses of 0.1, 0.2, 0.4, 0.8 and 1 seconds, not in each of three.
        assert seen[0] == 1 and 5 <= seen[-1] <= 8
        server.response = allowed()
        clock.now += 1
        assert client.check("api", "k").failure is None
        assert client.check("api", "k").failure is None
    assert "does not answer" in caplog.text and "answers again" in caplog.text


def test_a_slow_server_costs_a_timeout_and_no_more(connect):
    # It sends a byte now and then: each is in time, the whole is not.
    with Scripted(allowed(), drip=0.02) as server:
        answer = connect(server.url, timeout=0.2).check("api", "k")
        assert answer.allowed and "timed out" in answer.failure
        assert server.written < len(allowed())


def test_a_server_that_accepts_and_is_silent_costs_a_timeout(connect):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        answer = connect(url, timeout=0.2, on_failure="deny").check("api", "k")
        assert not answer.allowed and "timed out" in answer.failure


def response(body, status="200 OK", extra=""):
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{extra}\r\n{body}".encode()


def allowed():
    return response('{"allowed":true,"limit":"api","remaining":1,"max":2,"wait":0}')


GARBAGE = {
    "nothing": b"",
    "other protocol": b"-ERR unknown command\r\n",
    "half a status": b"HTTP/1.1 2",
    "old version": b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "no status": b"HTTP/1.1 OK\r\ncontent-length: 2\r\n\r\n{}",
    "odd digits": "HTTP/1.1 ²00 OK\r\ncontent-length: 2\r\n\r\n{}".encode(),
    "no length": b'HTTP/1.1 200 OK\r\n\r\n{"allowed":true}',
    "negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    "huge length": b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "header without colon": b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
    "cut body": b'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{"allowed":',
    "no JSON": response("allowed"),
    "not UTF-8": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n\xff\xfe",
    "deep JSON": response("[" * 100_000),
    "list": response("[true]"),
    "no decision": response("{}"),
    "decision as text": response('{"allowed":"false"}'),
    "decision as number": response('{"allowed":1}'),
    "wait as text": response('{"allowed":true,"wait":"1"}'),
    "remaining as flag": response('{"allowed":true,"remaining":true}'),
    "redirect": response("{}", "302 Found", "location: http://example.com/\r\n"),
    "proxy page": response("<h1>Not Found</h1>", "404 Not Found"),
    "unavailable": response('{"detail":"starting"}', "503 Service Unavailable"),
    "too many requests": response('{"detail":"slow down"}', "429 Too Many Requests"),
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_a_failure_and_never_a_decision(connect, answer):
    with Scripted(answer, keep_alive=False) as server:
        got = connect(server.url, timeout=PATIENT, on_failure="deny").check("api", "k")
        assert not got.allowed and got.failure


def test_bytes_after_an_answer_end_the_connection(connect):
    with Scripted(allowed() + b"HTTP/1.1 200 OK\r\n", keep_alive=True) as server:
        client = connect(server.url, timeout=PATIENT, on_failure="raise")
        assert client.check("api", "k") and client.check("api", "k")
        assert server.connections == 2


def test_a_cancelled_call_leaves_the_client_usable(server, key):
    async def main():
        async with AsyncClient(server.url, timeout=PATIENT, on_failure="raise") as client:
            call = asyncio.ensure_future(client.check("login", key))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            return await client.check("login", key)

    assert asyncio.run(main()).allowed


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"url": "127.0.0.1:8390"}, "is no URL of a server"),
        ({"url": "redis://127.0.0.1"}, "is no URL of a server"),
        ({"url": "http://127.0.0.1/v1"}, "more than scheme, host and port"),
        ({"url": "http://exämple.com"}, "is no URL of a server"),
        ({"url": "http://a..b"}, "is no name of a host"),
        ({"url": f"http://{'a' * 64}.example"}, "is no name of a host"),
        ({"timeout": 0}, "timeout 0 is invalid"),
        ({"max_pause": 0}, "max_pause 0 is invalid"),
        ({"on_failure": "pass"}, 'use "allow", "deny" or "raise"'),
        ({"token": "a\r\nb"}, "the token is invalid"),
    ],
)
def test_wrong_settings_say_what_would_be_right(connect, settings, says):
    with pytest.raises(ValueError, match=says):
        connect(**settings)


def test_questions_are_json(connect):
    with Scripted(allowed()) as server:
        connect(server.url, timeout=PATIENT).check("api", ["a", "b"], 3)
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
        assert head.startswith(b"POST /v1/check HTTP/1.1\r\n")
        assert json.loads(body) == {"limit": "api", "key": ["a", "b"], "cost": 3}
