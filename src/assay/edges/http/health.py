"""What operators ask beside the protocol: whether we live, whether we take requests, and how many there were."""

from collections.abc import Callable
from typing import Any

from assay.edges.http.access import Door
from assay.edges.http.replies import Receive, Route, Send, reads, text
from assay.edges.http.request_headers import headers_of


def probes(door: Door, *, stopping: Callable[[], bool], metrics: Callable[[], bytes]) -> dict[str, Route]:
    """
    The routes for that, by path. Whoever asks for health need not come in by *door*; whoever reads the metrics does.

    There is nothing to get ready: everything is read and compiled before anybody is listened to.
    """

    async def health(scope: dict[str, Any], _: Receive, send: Send) -> None:
        if await reads(scope, send):
            await text(send, 200, b"ok\n")

    async def readiness(scope: dict[str, Any], _: Receive, send: Send) -> None:
        if await reads(scope, send):
            status, word = (503, b"stopping\n") if stopping() else (200, b"ready\n")
            await text(send, status, word)

    async def figures(scope: dict[str, Any], _: Receive, send: Send) -> None:
        if await reads(scope, send) and await door.admitted(scope, headers_of(scope), send) is not None:
            await text(send, 200, metrics(), b"text/plain; version=0.0.4; charset=utf-8")

    return {"/healthz": health, "/readyz": readiness, "/metrics": figures}
