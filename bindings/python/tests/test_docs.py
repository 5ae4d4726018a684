"""Every example of docs/python.md and of the README runs, and prints what it says."""

import io
import re
import runpy
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from django_site import wsgi_application
from fastapi.testclient import TestClient
from redis_server import redis_server
from server import POLICY, REPOSITORY, Spillgate

PAGES = ["docs/python.md", "README.md"]


def examples(language):
    """Where each block of a language is, and its text."""
    found = []
    for page in PAGES:
        for section in re.split(r"^#+ ", (REPOSITORY / page).read_text(), flags=re.MULTILINE):
            heading = section.split("\n", 1)[0]
            for block in re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL):
                found.append((f"{page}: {heading}", block))
    return found


def printed(text):
    """What an example says that it prints."""
    return re.findall(r"print\(.*\)  # (.*)", text)


def limits_callers(app):
    """The application passes some requests of a burst, and refuses others."""
    client = app.test_client() if hasattr(app, "test_client") else TestClient(app)
    assert {client.get("/").status_code for _ in range(200)} == {200, 429}


def limits_by_api_key(app):
    client = TestClient(app)
    keys = ["k1", "k1", "k1", "k2", "unknown1", "unknown2", "unknown3"]
    refused = [client.get("/", headers={"x-api-key": key}).status_code == 429 for key in keys]
    assert refused == [False, False, True, False, False, False, True]


@pytest.fixture(scope="module")
def redis():
    with redis_server() as (url, _):
        yield url


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Spillgate(tmp_path_factory.mktemp("server"), POLICY) as server:
        yield server.url


@pytest.mark.parametrize(("place", "text"), examples("python"), ids=lambda value: value.split("\n")[0])
def test_example(place, text, tmp_path, monkeypatch, request):
    # A site's settings are there before its wsgi.py is read.
    wsgi_application()
    monkeypatch.chdir(tmp_path)
    [policy] = [policy for page, policy in examples("toml") if page.startswith("docs/")]
    Path("spillgate.toml").write_text(policy)
    for service, usual in [("redis", "redis://127.0.0.1:6379"), ("server", "http://127.0.0.1:8390")]:
        if usual in text:
            text = text.replace(usual, request.getfixturevalue(service))
    # A busy machine may be slow.
    text = text.replace("timeout=0.2", "timeout=30")
    Path("example.py").write_text(text)
    with redirect_stdout(io.StringIO()) as output:
        names = runpy.run_path("example.py")
    assert output.getvalue().splitlines() == printed(text)
    if "api_key" in names:
        limits_by_api_key(names["app"])
    elif "hello" in names:
        limits_callers(names["app"])
    else:
        assert printed(text) or "application" in names, "an example that shows nothing"


def test_the_page_has_examples():
    assert len(examples("python")) >= 15
