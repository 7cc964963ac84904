"""
What every part of a conversation's judge shares: its settings, its state, and what the policy decides.

No I/O, no clock. The parts are `quick_look`, `request_judge`, `answer_judge` and `broken_frames`; `conversation` joins
them.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from assay.base.limits import DEFAULT, Limits
from assay.base.verdict import Exchange, Kind, Party, Violation
from assay.contracts.header_arguments import ParamHeaders
from assay.contracts.tool_contract import Contract
from assay.contracts.tool_contracts import Tools
from assay.core import state_rules
from assay.core.policy import Policy
from assay.core.state import Memory
from assay.engine.budget import Budget
from assay.ladder import envelope, serving
from assay.ladder.headers import Headers
from assay.ladder.protocol import Entry, Judge

if TYPE_CHECKING:
    from assay.lock.inspection import Inspection

CLIENT: Final = Party.CLIENT
SERVER: Final = Party.SERVER


class Facts(NamedTuple):
    """What the transport knows of a frame beside its bytes."""

    transport: Literal["stdio", "http"] = "stdio"
    revision: str | None = None
    """The revision that a header names, over HTTP."""
    headers: Headers | None = None
    """The headers of an HTTP request, by name in lower case."""
    served: bool = False
    """Whether the guard itself is the HTTP server of a revision without a handshake: see `serving`."""
    spoken: Collection[str] | None = None
    """The revisions that the server behind the guard supports, if it has listed them."""


NO_FACTS: Final = Facts()


class JudgeBase:
    """The settings and the state of one conversation."""

    def __init__(
        self,
        *,
        mode: Literal["enforce", "audit"] = "enforce",
        revision: str | None = None,
        profile: Literal["mcp", "strict"] = "mcp",
        limits: Limits = DEFAULT,
        errata: bool = True,
        tools: Tools | None = None,
        lock: "Inspection | None" = None,
        policy: Policy | None = None,
        lines: bool = False,
    ) -> None:
        if mode not in {"enforce", "audit"}:
            raise ValueError(f"mode is enforce or audit, not {mode!r}")
        if profile not in {"mcp", "strict"}:
            raise ValueError(f"profile is mcp or strict, not {profile!r}")
        self.mode = mode
        self._terms: dict[str, Any] = {
            "mode": mode, "profile": profile, "limits": limits, "errata": errata, "lock": lock, "policy": policy,
            "lines": lines,
        }  # fmt: skip
        self._lines = lines
        self.limits = limits
        self._enforcing = mode == "enforce"
        self._profile = envelope.PROFILES[profile]
        # The quick look supports the common profile only.
        quick = profile == "mcp"
        self._memory = Memory(
            limits,
            revision,
            errata=errata,
            quick=quick,
            tools=tools,
            policy=policy,
        )
        self._policy = policy
        self._sides = self._memory.sides
        self._client, self._server = self._sides[CLIENT], self._sides[SERVER]
        self._tools = self._memory.tools
        self._lock = lock
        self._frame_bytes = limits.frame_bytes
        self._depth = limits.depth
        self._values = limits.values
        self._id_bytes = limits.id_bytes
        self._most_open = limits.open_requests
        self._budget = Budget(b"", limits.violations)
        """The work that the current message may still cost."""
        self._closing: Exchange | None = None
        """The request whose answer is being judged and is not delivered yet."""

    @property
    def revision(self) -> str | None:
        """The negotiated revision; None before one is known."""
        return self._memory.lifecycle.revision

    @property
    def tools(self) -> Tools:
        """The tools that the server has listed."""
        return self._tools

    def _called(self, message: dict[str, Any]) -> Contract | None:
        """Return the contract of the tool that *message* calls; None if it is not known."""
        params = message.get("params")
        name = params.get("name") if type(params) is dict else None
        return self._tools.known.get(name) if type(name) is str else None

    def _stops(self, message: Any, found: Sequence[Violation], facts: Facts) -> bool:
        """Return whether a message is stopped: by the mode, or because the guard that serves it has to."""
        enforced = self._enforcing and is_refused(found)
        return enforced or (facts.served and serving.must_stop(message, found, facts.spoken))

    def _entry(self, judge: Judge, party: Party, kind: Kind, message: dict[str, Any]) -> Entry | None:
        """Return the entry of the method of *message*; None if *party* may not send it as *kind*."""
        method = message["method"]
        known = judge.calls[party, kind].get(method) or judge.extended(party, kind, method)
        if known is None or known.extension is None or not self._memory.leaves_out(known.extension, message):
            return known
        return judge.stranger(party, method)

    def _no_such_method(self, judge: Judge, party: Party, kind: Kind, message: dict[str, Any]) -> Violation:
        owner = judge.extensions.owner(message["method"], judge.revision)
        left_out = owner is not None and self._memory.leaves_out(owner, message)
        beyond = self._memory.rule_beyond(judge, party, message)
        return state_rules.no_such_method(judge, party, kind, message, beyond, left_out=left_out)

    def _decided(self, found: list[Violation], tool: str | None = None) -> list[Violation]:
        """Return *found*, each violation with the action that the policy has for it."""
        return found if self._policy is None or not found else self._policy.decided(found, tool)

    def _listed(self, found: Sequence[Violation], more: int) -> tuple[tuple[Violation, ...], int]:
        """Return the violations to list, the one that stops the message first, and the number of others."""
        most = self.limits.violations
        return tuple(_reason_first(found)[:most]), more + max(0, len(found) - most)


def repeated_headers(known: Contract | None) -> ParamHeaders:
    """Return the headers that repeat arguments of a tool."""
    return () if known is None else known.headers


def is_refused(found: Sequence[Violation]) -> bool:
    """Return whether one of the violations *found* stops the message."""
    # Most messages have no violation, and a generator takes 0.3 µs.
    return bool(found) and any(each.stops for each in found)


def _reason_first(found: Sequence[Violation]) -> Sequence[Violation]:
    """
    Return *found* with the first violation that stops the message before all others, which keep their order.

    Only that one, because it is shown as the reason. If all that stop came first, they could push out every report.
    """
    reason = next((number for number, each in enumerate(found) if each.stops), 0)
    return [found[reason], *found[:reason], *found[reason + 1 :]] if reason else found
