"""A site for gunicorn."""

from spillgate.wsgi import SpillgateMiddleware


def hello(environ, start_response):
    start_response("200 OK", [("content-type", "text/plain"), ("content-length", "5")])
    return [b"hello"]


app = SpillgateMiddleware(hello, limiter="5/h")
