"""The routes for operators: health, readiness and metrics."""

from collections.abc import Callable
from typing import Any

from assay.edges.http.access import Door
from assay.edges.http.replies import Receive, Route, Send, reads, text
from assay.edges.http.request_headers import headers_of


def probes(door: Door, *, stopping: Callable[[], bool], metrics: Callable[[], bytes]) -> dict[str, Route]:
    """
    Return the routes by path. Health needs no access check; metrics are behind *door*.

    The server is ready at once: everything is read and compiled before it listens.
    """

    async def health(scope: dict[str, Any], _: Receive, send: Send) -> None:
        if await reads(scope, send):
            await text(send, 200, b"ok\n")

    async def readiness(scope: dict[str, Any], _: Receive, send: Send) -> None:
        if await reads(scope, send):
            status, word = (503, b"stopping\n") if stopping() else (200, b"ready\n")
            await text(send, status, word)

    async def figures(scope: dict[str, Any], _: Receive, send: Send) -> None:
        if await reads(scope, send) and await door.admitted(headers_of(scope), send) is not None:
            await text(send, 200, metrics(), b"text/plain; version=0.0.4; charset=utf-8")

    return {"/healthz": health, "/readyz": readiness, "/metrics": figures}
