"""The body of a request, as far as it may go. How long it may take is watched over for all connections together."""

from assay.edges.http.replies import Receive


class Gone(Exception):  # noqa: N818 - no error of ours: the client has left
    """The client has gone, or was sent away, before its request was whole."""


def says_too_long(length: bytes | None, limit: int) -> bool:
    """Whether a request says of itself that its body is longer than *limit*: then nothing of it is read."""
    return length is not None and length.isdigit() and (len(length) > 15 or int(length) > limit)


async def read(receive: Receive, limit: int) -> bytes:
    """The body, or one byte more than *limit* of it, which is enough to refuse it. Raises `Gone`."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        return body[: limit + 1] if len(body) > limit else body
    pieces: list[bytes] = []
    held = 0
    while message["type"] == "http.request":
        pieces.append(message.get("body", b""))
        held += len(pieces[-1])
        if held > limit or not message.get("more_body"):
            return b"".join(pieces)[: limit + 1]
        message = await receive()
    raise Gone
