"""A service as Python's own HTTP server makes it: a thread for each connection, and a handler that
computes for some milliseconds. It answers with the query of the request."""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECONDS = float(sys.argv[2]) / 1000


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self):
        begin = time.thread_time()
        while time.thread_time() - begin < SECONDS:
            pass
        body = self.path.partition("?")[2].encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
