"""Where a conversation is: the revision in force, and which messages are allowed yet. No I/O, no ids, no tools."""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from assay.judge.revision_rules import RevisionRules, rules_of
from assay.model.json_values import REVISION_KEY, named_revision, obj
from assay.model.verdict import Party, Verdict, Violation
from assay.rules import violation
from assay.spec.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS, handshake, is_known, nearest_handshake

Phase = Literal["new", "initializing", "negotiated", "operating", "stateless"]

_EARLY: Final = "protocol/before-initialized"

_MOST_NAMED: Final = 3
"""The number of revisions of a server that a finding names."""


class LifecycleStage(NamedTuple):
    """The rules for a message, and the violations of sending it in this phase."""

    rules: RevisionRules
    violations: tuple[Violation, ...] = ()


class Lifecycle:
    """The phases of one conversation."""

    __slots__ = ("_asked_for", "_early", "_errata", "_reported_early", "modern_only", "phase", "rules")

    def __init__(self, revision: str | None = None, *, errata: bool = True) -> None:
        self._errata = errata
        self._asked_for = LATEST_HANDSHAKE
        self._early = False
        self.modern_only = ""
        """The revisions of a server that has none with a handshake, for people; empty for any other server."""
        self._reported_early = False
        self.phase: Phase = "new"
        self.rules = self._rules_of(LATEST_HANDSHAKE if revision is None else revision)
        if revision is not None:
            self.phase = "operating" if handshake(revision) else "stateless"

    @property
    def revision(self) -> str | None:
        """The revision in force; None before one is agreed."""
        return None if self.phase in {"new", "initializing"} else self.rules.revision

    def place_request(self, party: Party, message: dict[str, Any], header: str | None) -> LifecycleStage:
        """
        Return the rules for a request, and the violations of sending it now.

        *header* is the revision that the transport names beside the message, if it does: over HTTP in a header.
        """
        method = message["method"]
        named = named_revision(message)
        if self.phase == "operating":
            again = method == "initialize" and party is Party.CLIENT
            return LifecycleStage(self.rules, (self._again(),) if again else ())
        if party is Party.SERVER:
            return self._place_of_handshake(party, method)
        opening: str | None = None
        if is_known(named) and handshake(named):
            if method == "server/discover" or (self.phase == "stateless" and method != "initialize"):
                return self._unsupported(named)
            # A revision with a handshake means nothing in `_meta`, where only revisions without one name themselves.
            opening, named = named, None
        stateless = header is not None and (not is_known(header) or not handshake(header))
        if named is not None or method == "server/discover" or stateless:
            return self._place_of_stateless(named if named is not None else header)
        if method == "initialize":
            return self._place_of_initialize(message)
        return self._place_of_handshake(party, method, opening)

    def place_notification(self, party: Party, method: str) -> LifecycleStage:
        """Return the rules for a notification, and the violations of sending it now."""
        if self.phase in {"operating", "stateless", "negotiated"} or method == "notifications/cancelled":
            return LifecycleStage(self.rules)
        if self.phase == "new":
            return LifecycleStage(self.rules, (self._before_initialize(party, method),))
        early = method == "notifications/initialized" and party is Party.CLIENT
        return LifecycleStage(
            self.rules, (self._before_initialized("the initialize result before it", method),) if early else ()
        )

    def once(self, found: list[Violation]) -> list[Violation]:
        """
        Return *found* without a second report about a message before `notifications/initialized`.

        Only the first message that came too early is reported: those after it follow from it. A refusal is always kept,
        because it stops the message.
        """
        kept = [each for each in found if each.rule != _EARLY or each.stops or not self._reported_early]
        self._reported_early = self._reported_early or any(each.rule == _EARLY for each in kept)
        return kept

    def initialize(self, params: Mapping[str, Any]) -> None:
        """Enter the phase after the client's `initialize`."""
        self.phase = "initializing"
        self._asked_for = _requested(params)
        self.rules = self._rules_of(self._asked_for)

    def place_initialize_result(self, result: dict[str, Any]) -> LifecycleStage:
        """Return the rules for the answer to `initialize`, which are those of the revision it names."""
        answered = result.get("protocolVersion")
        if not isinstance(answered, str) or (is_known(answered) and handshake(answered)):
            return LifecycleStage(self._rules_of(answered if isinstance(answered, str) else self._asked_for))
        nearest = nearest_handshake(answered)
        wrong = violation(
            "protocol/unknown-revision",
            "/result/protocolVersion",
            expected=f"one of {', '.join(each for each in REVISIONS if handshake(each))}",
            found=f'"{answered[:40]}"',
            revision=nearest,
        )
        return LifecycleStage(self._rules_of(nearest), (wrong,))

    def negotiated(self, rules: RevisionRules) -> None:
        """Enter the phase after the server's answer to `initialize`, in the revision of *rules*."""
        self.phase = "operating" if self._early else "negotiated"
        self._early = False
        self.rules = rules

    def refused(self) -> None:
        """Return to the first phase after a failed `initialize`: the client may try again."""
        self.phase = "new"
        self._early = False
        self.rules = self._rules_of(LATEST_HANDSHAKE)

    def initialized(self) -> None:
        """Enter the last phase, or do so once the server has answered, if the client is too early."""
        if self.phase == "negotiated":
            self.phase = "operating"
        elif self.phase in {"new", "initializing"}:
            self._early = True

    def stateless(self, rules: RevisionRules) -> None:
        """Note that a request or an answer of a revision without a handshake was forwarded."""
        self.phase = "stateless"
        self.rules = rules

    def server_supports(self, versions: Any) -> None:
        """Note the revisions that the server listed to this client: any value of a peer, None if they are unknown."""
        listed = versions if isinstance(versions, list) else []
        modern = all(isinstance(each, str) and not handshake(each) for each in listed)
        self.modern_only = ", ".join(each[:40] for each in listed[:_MOST_NAMED]) if modern else ""

    def _rules_of(self, revision: str) -> RevisionRules:
        return rules_of(revision, errata=self._errata)

    def _place_of_stateless(self, named: str | None) -> LifecycleStage:
        revision = LATEST if named is None else named
        return LifecycleStage(self._rules_of(revision)) if is_known(revision) else self._unsupported(revision)

    def _unsupported(self, revision: str) -> LifecycleStage:
        """Return the violation of a request that names an unknown revision, or one that needs a handshake."""
        opened = is_known(revision) and handshake(revision)
        wrong = violation(
            "protocol/unsupported-revision",
            f"/params/_meta/{REVISION_KEY.replace('/', '~1')}",
            expected=f"{LATEST}, which needs no handshake" if opened else f"one of {', '.join(REVISIONS)}",
            found=f'"{revision[:40]}"',
            revision=LATEST,
            hint=_needs_initialize(revision) if opened else None,
        )
        return LifecycleStage(self._rules_of(LATEST), (wrong,))

    def _place_of_initialize(self, message: dict[str, Any]) -> LifecycleStage:
        if self.phase in {"initializing", "negotiated"}:
            return LifecycleStage(self.rules, (self._again(),))
        asked = self._rules_of(_requested(obj(message.get("params"))))
        return LifecycleStage(asked, (self._fallback(),) if self.modern_only else ())

    def _place_of_handshake(self, party: Party, method: str, named: str | None = None) -> LifecycleStage:
        """Return the rules for a request before the handshake is complete; *named* is the revision in its `_meta`."""
        if method == "ping" or self.phase == "stateless":
            return LifecycleStage(self.rules)
        if self.phase == "new":
            return LifecycleStage(self.rules, (self._before_initialize(party, method, named),))
        awaited = "the initialize result" if self.phase == "initializing" else "notifications/initialized"
        return LifecycleStage(self.rules, (self._before_initialized(f"only ping before {awaited}", method),))

    def _again(self) -> Violation:
        return violation(
            "protocol/initialize-again",
            "/method",
            expected="one initialize",
            found="another",
            revision=self.rules.revision,
        )

    def _fallback(self) -> Violation:
        return violation(
            "protocol/era-fallback",
            "/method",
            expected=f"a request of {self.modern_only}: the server lists no revision with a handshake",
            found="initialize",
            revision=LATEST,
        )

    def _before_initialize(self, party: Party, method: str, named: str | None = None) -> Violation:
        hint = None if named is None else _needs_initialize(named)
        return violation(
            "protocol/before-initialize",
            "/method",
            expected="initialize" if party is Party.CLIENT else "no message before the client's initialize",
            found=method[:60],
            revision=self.rules.revision,
            hint=hint if party is Party.CLIENT else "Wait for the client's initialize.",
        )

    def _before_initialized(self, expected: str, method: str) -> Violation:
        return violation(_EARLY, "/method", expected=expected, found=method[:60], revision=self.rules.revision)


def _needs_initialize(revision: str) -> str:
    """Return the hint for a request that names a *revision* with a handshake in its `_meta`."""
    return f"{revision} needs initialize; name {LATEST} here."


def _requested(params: Mapping[str, Any]) -> str:
    """Return the revision for an `initialize` request: the one it asks for, or the newest with a handshake."""
    asked = params.get("protocolVersion")
    known = is_known(asked) and handshake(asked)
    return str(asked) if known else LATEST_HANDSHAKE


_OPENING: Final = frozenset({"initialize", "server/discover"})
"""Requests that only propose a revision."""


def spoken(verdict: Verdict) -> str | None:
    """
    Return the revision that a message shows to be in use; None if it shows none.

    The result of `initialize` names it. A client may send `server/discover` first and then choose a handshake, so that
    neither the probe nor its answer shows anything.
    """
    if verdict.method not in _OPENING:
        return verdict.revision
    if verdict.method == "server/discover" or verdict.kind != "result":
        return None
    result = verdict.value.get("result")
    named = result.get("protocolVersion") if isinstance(result, dict) else None
    return named if is_known(named) else None


def preferred(known: str | None, now: str | None) -> str | None:
    """Return the revision to name for several messages: the first, but one with a handshake rather than one without."""
    if now is None or known is None:
        return known or now
    return now if handshake(now) and not handshake(known) else known
