"""A collector to test with, over HTTP or in process: decodes OTLP with the official classes, and keeps it."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SECONDS = 60.0
"""How long anything is waited for. All of it takes milliseconds; a machine under load takes longer."""

Answer = Callable[["Handler"], None]


class Collector:
    """What a collector was sent, and how it answers."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.metrics: list[Metric] = []
        """Those of the last delivery: each holds all since the start."""
        self.resources: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.answered = 0
        self.answer: Answer = well
        self.over = threading.Event()
        """Set at the end: an answer that is never given waits for it."""
        self.url = ""
        self._changed = threading.Condition()

    def keep(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Takes what was posted to *path*."""
        with self._changed:
            self.headers.append(headers)
            self.bodies.append(body)
            if path.endswith("/v1/traces"):
                for each in ExportTraceServiceRequest.FromString(body).resource_spans:
                    self.resources.append(values(each.resource.attributes))
                    self.spans += [span for scope in each.scope_spans for span in scope.spans]
            else:
                assert path.endswith("/v1/metrics")
                for one in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    self.metrics = [metric for scope in one.scope_metrics for metric in scope.metrics]
            self._changed.notify_all()

    def answer_to(self, handler: "Handler") -> None:
        """Answers as it does at present."""
        self.answer(handler)
        with self._changed:
            self.answered += 1
            self._changed.notify_all()

    def wait_for(self, what: Callable[["Collector"], bool]) -> None:
        """Returns when *what* holds of what was sent."""
        with self._changed:
            assert self._changed.wait_for(lambda: what(self), SECONDS)


class Handler(BaseHTTPRequestHandler):
    """One connection to a collector."""

    collector: Collector
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.collector.connections += 1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.collector.keep(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.collector.answer_to(self)

    def log_message(self, *_: Any) -> None:
        pass


def well(handler: Handler) -> None:
    """As a collector answers that has taken everything."""
    handler.send_response(200)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def values(attributes: Any) -> dict[str, Any]:
    """Attributes as a plain dict."""
    return {each.key: value(each.value) for each in attributes}


def value(given: AnyValue) -> Any:
    """What is in one of OTLP's values."""
    kind = given.WhichOneof("value")
    assert kind is not None
    if kind == "array_value":
        return [value(each) for each in given.array_value.values]
    return getattr(given, kind)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()
    handler = type("Handler", (Handler,), {"collector": collector})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        collector.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield collector
        finally:
            collector.over.set()
            server.shutdown()
            thread.join(SECONDS)


class CollectorInProcess(Collector):
    """A collector that the exporters of the SDK reach without a socket: it stands in the place of HTTP itself."""

    def __init__(self) -> None:
        super().__init__()
        self.url = "http://collector.example"
        self.status = 200
        self.free: threading.Event | None = None
        """Answers are given when it is set."""

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:
        """In the place of `HTTPAdapter.send`."""
        assert isinstance(request.body, bytes)
        headers = {name.lower(): str(value) for name, value in request.headers.items()}
        self.keep(urlsplit(request.url or "").path, headers, request.body)
        if self.free is not None:
            assert self.free.wait(SECONDS)
        response = requests.Response()
        response.status_code, response.request, response.url = self.status, request, request.url or ""
        response.reason, response.raw = {503: "Service Unavailable"}.get(self.status, ""), BytesIO()
        response.headers["Retry-After"] = "0"
        with self._changed:
            self.answered += 1
            self._changed.notify_all()
        return response


@contextmanager
def collecting_in_process() -> Iterator[CollectorInProcess]:
    """
    A collector for all that is exported meanwhile. What the machine says of collectors is not for us.

    No thread of an exporter outlives it: with each attempt one draws from `random`, and Hypothesis fails a law during
    which another does.
    """
    collector = CollectorInProcess()
    before = set(threading.enumerate())
    with pytest.MonkeyPatch.context() as patch:
        nothing_said(patch)
        adapter = type("Adapter", (requests.adapters.HTTPAdapter,), {"send": staticmethod(collector.send)})
        patch.setattr(requests.sessions, "HTTPAdapter", adapter)
        yield collector
        for thread in set(threading.enumerate()) - before:
            thread.join(SECONDS)
            assert not thread.is_alive(), thread.name


def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine that tests has to say of collectors and proxies is not for us."""
    for name in list(os.environ):
        if name.startswith("OTEL_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
