"""The judge for journals of the asset server. Imported only for one: it has the tools of that server."""

from typing import Any

from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.mcp_methods import Methods
from assay.base.verdict import Party, Verdict
from assay.core.conversation import Facts
from assay.ladder import syntax
from assay.records.journal.replay import ReplayOpening


class AssetJudge:
    """A conversation with the asset server, whose tools are known from the start."""

    def __init__(self, opening: ReplayOpening) -> None:
        self._server = AssetServer(Methods(Catalogue()), limits=opening.limits, revision=opening.revision)
        self._asked: dict[str, Verdict] = {}

    def hear(self, party: Party, frame: bytes, facts: Facts) -> Verdict | None:
        """Return the verdict on *frame*; None for a response without a request."""
        if party == "client":
            turn = self._server.hear(frame, facts)
            self._asked |= {_key(each.value): each for each in turn.asked}
            return turn.verdict
        asked = self._asked.pop(_key(syntax.read(frame)), None)
        return None if asked is None else self._server.settle(asked, (frame, None))

    def give_up(self, *_: object, **__: object) -> Verdict | None:
        """Do nothing: the asset server always answers."""
        return None

    def renew(self) -> None:
        """Do nothing: the asset server is never restarted."""


def _key(message: Any) -> str:
    ident = message.get("id") if isinstance(message, dict) else None
    return f"{type(ident).__name__} {ident}"
