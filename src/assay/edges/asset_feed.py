"""The records of the asset server in its live feed: it has one recorder in place of sessions."""

from assay.edges.feed_door import FeedDoor
from assay.edges.recorder import Recorder
from assay.records.journal import Journal
from assay.records.live.unwritten import unwritten_journal
from assay.settings import Settings


def offer_assets(
    door: FeedDoor, settings: Settings, recorder: Recorder, journal: Journal | None, *, route: str
) -> None:
    """Offer what *recorder* records: the lines of *journal*, or without one those that are made for listeners."""
    feed = door.feed
    feed.add("assets", route).journal = journal

    def switch(on: bool) -> None:
        if journal is not None:
            journal.tap(feed.lines if on else None)
        elif on:
            made = unwritten_journal(settings, None, "assets")
            made.tap(feed.lines)
            recorder.lend(made)
        else:
            recorder.lend(None)

    feed.switches.append(switch)
