"""A small HTTP server for metrics: GET /metrics gives the text that Prometheus reads, anything else is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from headgate.model.errors import SetupError
from headgate.runtime.exposition import CONTENT_TYPE

LOOPBACK = "127.0.0.1"


@contextmanager
def serve_metrics(text: Callable[[], str], port: int, host: str = LOOPBACK) -> Iterator[str]:
    """Answers scrapes until the block ends; gives the address. Port 0 takes a free one."""
    try:
        server = _Server((host, port), _handler(text))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SetupError(
            f"cannot serve metrics on {host}:{port}: {reason}", remedy="choose another --metrics-port"
        ) from error
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A scrape that hangs does not keep the run from ending.
    block_on_close = False


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "headgate"
        sys_version = ""
        timeout = 10

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND, "metrics are under /metrics")
                return
            body = text().encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """The terminal belongs to the run."""

    return Handler
