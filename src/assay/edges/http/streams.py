"""How a stream learns that it is over. A future says so, once, whoever is first."""

from asyncio import Future

from assay.edges.http.replies import Receive


async def until_gone(receive: Receive, closing: "Future[None]") -> None:
    """Waits until the client goes, and says so."""
    while (await receive())["type"] != "http.disconnect":
        pass
    close(closing)


def close(closing: "Future[None]") -> None:
    """It is over."""
    if not closing.done():
        closing.set_result(None)
