"""What reads from outside takes anything: generated responses, requests and answers."""

import asyncio
import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from spillgate._client import Answer, ServerError, _answer
from spillgate._http import Malformed, Response, ResponseReader
from spillgate.asgi import SpillgateMiddleware as Asgi
from spillgate.wsgi import SpillgateMiddleware as Wsgi

# The same cases every time, so that a failure is of the change and not of the day.
generated = settings(derandomize=True, deadline=None, max_examples=300)

POLICY = """
[identity]
trusted-proxies = ["203.0.113.0/24"]
api-key = { header = "x-api-key", accept = ["k1"] }

[[limit]]
name = "api"
quota = "1000000/s"

[[limit]]
name = "users"
match = { path = "/users/{id}" }
per = ["path:id", "header:x-team"]
quota = "1000000/s"
"""


async def asgi_app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})


def wsgi_app(environ, start_response):
    start_response("200 OK", [])
    return []


OVER_ASGI, OVER_WSGI = Asgi(asgi_app, POLICY), Wsgi(wsgi_app, POLICY)
PIECES = st.sampled_from(
    [b"HTTP/1.1 ", b"200 OK", b"\r\n", b"\r\n\r\n", b"content-length: ", b"5", b":", b"\0", b"hello"]
)
BYTES = st.lists(st.one_of(PIECES, st.binary(max_size=20)), max_size=12).map(b"".join)


def read(pieces):
    reader = ResponseReader()
    for piece in pieces:
        try:
            response = reader.feed(piece)
        except Malformed:
            return "malformed"
        if response is not None:
            return response.status, response.body
    return None


@generated
@given(BYTES, st.integers(1, 8))
@example(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 1)
def test_a_response_is_the_same_in_any_pieces(data, size):
    whole = read([data])
    pieces = read([data[start : start + size] for start in range(0, len(data), size)])
    assert pieces == whole


@generated
@given(st.integers(100, 999), st.binary(max_size=200), st.integers(1, 50))
def test_a_valid_response_is_read(status, body, size):
    data = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nx: y\r\n\r\n%s" % (status, len(body), body)
    assert read([data[start : start + size] for start in range(0, len(data), size)]) == (status, body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
MEMBERS = st.sampled_from(["allowed", "limit", "remaining", "wait", "retry_after", "limits", "failure", "x"])


@generated
@given(st.dictionaries(MEMBERS, JSON) | JSON, st.sampled_from([200, 204, 302, 400, 404, 429, 500]))
def test_an_answer_is_a_decision_or_an_error(body, status):
    try:
        answer = _answer(Response(status, json.dumps(body).encode(), True))
    except (Malformed, ServerError):
        return
    assert isinstance(answer, Answer) and answer.failure is None
    assert answer.allowed is body["allowed"] and status == 200


HEADERS = st.lists(
    st.tuples(
        st.sampled_from([b"x-forwarded-for", b"x-api-key", b"x-team", b"host"]) | st.binary(max_size=8),
        st.binary(max_size=20),
    ),
    max_size=4,
)
PEERS = st.none() | st.tuples(st.sampled_from(["203.0.113.7", "::1", "", "x"]) | st.text(max_size=8), st.just(1))


@generated
@given(st.text(max_size=12) | st.just("/users/7"), st.text(max_size=6) | st.just("GET"), HEADERS, PEERS)
def test_any_request_gets_a_response_over_asgi(path, method, headers, client):
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": client}
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(OVER_ASGI(scope, None, send))
    assert sent[0]["status"] in (200, 400, 403, 429)


LATIN = st.text(st.characters(max_codepoint=255), max_size=12)


@generated
@given(LATIN, LATIN | st.just("GET"), st.dictionaries(LATIN, st.text(max_size=12), max_size=4), st.text(max_size=8))
def test_any_request_gets_a_response_over_wsgi(path, method, headers, peer):
    environ = {"PATH_INFO": path, "REQUEST_METHOD": method, "REMOTE_ADDR": peer}
    environ.update({f"HTTP_{name}": value for name, value in headers.items()})
    started = []
    OVER_WSGI(environ, lambda status, headers: started.append(int(status[:3])))
    assert started[0] in (200, 400, 403, 429)

