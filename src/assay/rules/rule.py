"""The fields of a rule, and the texts that many rules share: their sources and actions. Data only."""

from typing import Final, NamedTuple

from assay.base.verdict import Action


class Rule(NamedTuple):
    """One rule. `id` is public API: it never changes its meaning."""

    id: str
    asks: str
    """What must hold, as a sentence."""
    why: str
    source: str
    """A page of the specification (``{revision}`` stands for the revision in force), another standard, or "ours"."""
    fix: str
    """What the author of the message can do."""
    action: Action
    code: str
    """The canonical error that refuses it."""
    example: str
    """A frame, or the part of a conversation, that breaks it."""
    strict: Action | None = None
    """The action under a strict policy, if it is stricter than `action`."""

    @property
    def severest(self) -> Action:
        """The action under a strict policy."""
        return self.strict or self.action

    @property
    def rung(self) -> str:
        """The rung that enforces it."""
        return self.id.partition("/")[0]


RFC8259 = "RFC 8259"
BASIC = "MCP {revision}, basic"
LIFECYCLE = "MCP {revision}, basic/lifecycle"
VERSIONING = "MCP {revision}, basic/versioning"
SCHEMA = "MCP {revision}, schema"
TOOLS = "MCP {revision}, server/tools"
CANCELLATION = "MCP {revision}, basic/utilities/cancellation"
PROGRESS = "MCP {revision}, basic/utilities/progress"
MRTR = "MCP {revision}, basic/patterns/mrtr"
LOGGING = "MCP {revision}, server/utilities/logging"
SUBSCRIPTIONS = "MCP {revision}, basic/patterns/subscriptions"
CACHING = "MCP {revision}, server/utilities/caching"
TASKS = "MCP {revision}, basic/utilities/tasks"
COMPLETION = "MCP {revision}, server/utilities/completion"
ROOTS = "MCP {revision}, client/roots"
ELICITATION = "MCP {revision}, client/elicitation"
STDIO = "MCP {revision}, basic/transports/stdio"
HTTP = "MCP {revision}, basic/transports/streamable-http"
OURS = "ours"

REFUSE: Final = "refuse"
QUARANTINE: Final = "quarantine"
REPORT: Final = "report"
