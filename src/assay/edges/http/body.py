"""Read the body of a request, up to a limit. Time limits are checked elsewhere, for all connections together."""

from assay.edges.http.replies import Receive


class Gone(Exception):  # noqa: N818 - no error of ours: the client has left
    """The client disconnected, or was disconnected, before its request was complete."""


def says_too_long(length: bytes | None, limit: int) -> bool:
    """Whether the declared length of the body exceeds *limit*: then nothing of it is read."""
    return length is not None and length.isdigit() and (len(length) > 15 or int(length) > limit)


async def read(receive: Receive, limit: int) -> bytes:
    """Return the body, or *limit* bytes and one more, which is enough to refuse it. Raises `Gone`."""
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
