"""Offer the live feed of a guard or of the asset server, as the settings ask for."""

# ruff: noqa: PLC0415  each command imports only what it needs

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.edges.feed_door import FeedDoor
    from assay.settings import Settings


@contextmanager
def offered(
    settings: Settings, log: Callable[[str], None], *, kind: str = "guard", transport: str, mode: str = ""
) -> Iterator[FeedDoor | None]:
    """Open the door of a live feed; None if it is off, and None with a line to *log* if it cannot be opened."""
    door = _opened(settings, log, kind, transport, mode) if settings.guard.feed else None
    try:
        yield door
    finally:
        if door is not None:
            door.close()


def _opened(settings: Settings, log: Callable[[str], None], kind: str, transport: str, mode: str) -> FeedDoor | None:
    from assay.records.live.live_sockets import SUPPORTED
    from assay.settings.state_directory import live_directory

    directory = live_directory(os.environ)
    if directory is None or not SUPPORTED:
        return None
    from assay.edges.feed_door import FeedDoor
    from assay.records.live.live_feed import LiveFeed

    journal = settings.journal
    feed = LiveFeed(kind, transport, mode=mode, payloads=journal.payloads, redact=journal.redact)
    try:
        door = FeedDoor.open(feed, directory)
    except OSError as error:
        log(f"assay: no live feed: {error.filename or directory}: {error.strerror}")
        return None
    return door
