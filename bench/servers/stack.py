"""What servers over HTTP have in common: the body of a request, an answer in JSON, and uvicorn at its quickest."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

uvicorn: Any = import_module("uvicorn")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def body(receive: Receive) -> bytes:
    """The whole body of a request."""
    message = await receive()
    whole: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        whole += message["body"]
    return whole


async def answer(send: Send, content: bytes) -> None:
    """A whole answer."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def run(app: Any, port: int, **options: Any) -> None:
    """Serves *app*: one worker, with httptools and uvloop."""
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        http="httptools",
        loop="uvloop",
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_keep_alive=120,
        **options,
    )
