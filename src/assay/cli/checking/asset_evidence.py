"""The judge for journals of the asset server. Imported only for one: it has the tools of that server."""

from typing import Any

from assay.assets.asset_server import AssetServer
from assay.assets.asset_sources import Catalogue
from assay.assets.mcp_methods import Methods
from assay.judge import syntax
from assay.judge.conversation import NO_FACTS, Conversation, Facts
from assay.judge.framing import Text
from assay.model.limits import Limits
from assay.model.verdict import Party, Verdict, verdict


class AssetConversation(Conversation):
    """A conversation with the asset server, which always answers and is never restarted."""

    def __init__(self, revision: str | None, limits: Limits) -> None:
        super().__init__(revision=revision, limits=limits)
        self._assets = AssetServer(Methods(Catalogue()), limits=limits, revision=revision)
        self._asked: dict[str, Verdict] = {}
        self._spoken = revision

    @property
    def revision(self) -> str | None:
        """The revision of the last message that has one."""
        return self._spoken

    def hear(self, party: Party, frame: Text, facts: Facts = NO_FACTS) -> Verdict:
        """Return the verdict on *frame*; a response without a request is not judged."""
        data = frame.encode() if isinstance(frame, str) else bytes(frame)
        if party is Party.CLIENT:
            turn = self._assets.hear(data, facts)
            self._asked |= {_key(each.value): each for each in turn.asked}
            self._spoken = turn.verdict.revision or self._spoken
            return turn.verdict
        value = syntax.read(data)
        asked = self._asked.pop(_key(value), None)
        if asked is None:
            return verdict(party, data, "result", None, None, None)
        return self._assets.settle(asked, (data, None))


def _key(message: Any) -> str:
    ident = message.get("id") if isinstance(message, dict) else None
    return f"{type(ident).__name__} {ident}"
