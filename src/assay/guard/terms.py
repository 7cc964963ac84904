"""How strictly a server is guarded, whichever way it and its clients are reached. No code."""

from typing import Literal, NamedTuple

from assay.model.limits import Limits
from assay.rules.policy import Policy

Mode = Literal["audit", "enforce"]


class Terms(NamedTuple):
    """The same for every server of one guard."""

    mode: Mode
    limits: Limits
    timeout: float
    """Seconds that a server has for an answer; 0 for ever."""
    policy: Policy | None = None
    """What is done about which rule, where that is not what the table of rules says."""

    @property
    def enforcing(self) -> bool:
        """Whether what is refused stops."""
        return self.mode == "enforce"
