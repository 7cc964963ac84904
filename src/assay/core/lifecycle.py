"""
Where a conversation stands: which revision is in force, and what may be said yet. No I/O, no ids, no tools.

Two eras. In the handshake revisions `initialize` comes first and settles the revision for good. From 2026-07-28 on
there is no handshake: each request names its revision in `_meta`, and one connection may see both, when a client's
`server/discover` is refused and it falls back to `initialize`.
"""

from typing import Any, Final, Literal, NamedTuple

from assay.base.meta import REVISION_KEY, named_revision
from assay.base.verdict import Party, Violation
from assay.ladder.protocol import Judge, judge
from assay.rules import violation
from assay.spec.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS, handshake, nearest_handshake

Phase = Literal["new", "initializing", "negotiated", "operating", "stateless"]

_EARLY: Final = "protocol/before-initialized"


class LifecycleStage(NamedTuple):
    """What a message is judged by, and what is wrong with its coming now."""

    judge: Judge
    violations: tuple[Violation, ...] = ()


class Lifecycle:
    """The phases of one conversation."""

    __slots__ = ("_asked_for", "_early", "_errata", "_told", "judge", "phase")

    def __init__(self, revision: str | None = None, *, errata: bool = True) -> None:
        self._errata = errata
        self._asked_for = LATEST_HANDSHAKE
        self._early = False
        self._told = False
        self.phase: Phase = "new"
        self.judge = self._judge_of(LATEST_HANDSHAKE if revision is None else revision)
        if revision is not None:
            self.phase = "operating" if handshake(revision) else "stateless"

    @property
    def revision(self) -> str | None:
        """The revision in force; None before one is known."""
        return None if self.phase in {"new", "initializing"} else self.judge.revision

    def place_request(self, party: Party, message: dict[str, Any], told: str | None) -> LifecycleStage:
        """
        What a request is judged by.

        *told* is the revision that the transport names beside the message (over HTTP, a header), if it does.
        """
        method = message["method"]
        named = named_revision(message)
        if self.phase == "operating":
            again = method == "initialize" and party is Party.CLIENT
            return LifecycleStage(self.judge, (self._again(),) if again else ())
        if party is Party.SERVER:
            return self._place_of_handshake(party, method)
        opening: str | None = None
        if named is not None and named in REVISIONS and handshake(named):
            if method == "server/discover" or (self.phase == "stateless" and method != "initialize"):
                return self._unsupported(named)
            # A revision that has a handshake, named where one without would name itself: it means nothing there.
            opening, named = named, None
        stateless = told is not None and (told not in REVISIONS or not handshake(told))
        if named is not None or method == "server/discover" or stateless:
            return self._place_of_stateless(named if named is not None else told)
        if method == "initialize":
            return self._place_of_initialize(message)
        return self._place_of_handshake(party, method, opening)

    def place_notification(self, party: Party, method: str) -> LifecycleStage:
        """What a notification is judged by."""
        if self.phase in {"operating", "stateless", "negotiated"} or method == "notifications/cancelled":
            return LifecycleStage(self.judge)
        if self.phase == "new":
            return LifecycleStage(self.judge, (self._before_initialize(party, method),))
        early = method == "notifications/initialized" and party is Party.CLIENT
        return LifecycleStage(
            self.judge, (self._before_initialized("the initialize result before it", method),) if early else ()
        )

    def once(self, found: list[Violation]) -> list[Violation]:
        """
        *found*, without a report that something came before `notifications/initialized` if there was one already.

        Whatever came too early is named; what follows on it is not to blame. A refusal is never left out: it stops.
        """
        kept = [each for each in found if each.rule != _EARLY or each.stops or not self._told]
        self._told = self._told or any(each.rule == _EARLY for each in kept)
        return kept

    def initialize(self, message: dict[str, Any]) -> None:
        """The client has asked to initialize."""
        self.phase = "initializing"
        self._asked_for = _requested(message)
        self.judge = self._judge_of(self._asked_for)

    def place_initialize_result(self, result: dict[str, Any]) -> LifecycleStage:
        """What the answer to initialize is judged by: the revision it names itself."""
        answered = result.get("protocolVersion")
        if not isinstance(answered, str) or (answered in REVISIONS and handshake(answered)):
            return LifecycleStage(self._judge_of(answered if isinstance(answered, str) else self._asked_for))
        nearest = nearest_handshake(answered)
        wrong = violation(
            "protocol/unknown-revision",
            "/result/protocolVersion",
            expected=f"one of {', '.join(each for each in REVISIONS if handshake(each))}",
            found=f'"{answered[:40]}"',
            revision=nearest,
        )
        return LifecycleStage(self._judge_of(nearest), (wrong,))

    def negotiated(self, by: Judge) -> None:
        """The server has answered initialize, in the revision of *by*."""
        self.phase = "operating" if self._early else "negotiated"
        self._early = False
        self.judge = by

    def refused(self) -> None:
        """Initialize has failed: the conversation is as new, and may be opened again."""
        self.phase = "new"
        self._early = False
        self.judge = self._judge_of(LATEST_HANDSHAKE)

    def initialized(self) -> None:
        """The client has said that it is ready; before the server has answered, that counts once it has."""
        if self.phase == "negotiated":
            self.phase = "operating"
        elif self.phase in {"new", "initializing"}:
            self._early = True

    def stateless(self, by: Judge) -> None:
        """A request or an answer of an era without handshake has passed."""
        self.phase = "stateless"
        self.judge = by

    def _judge_of(self, revision: str) -> Judge:
        return judge(revision, errata=self._errata)

    def _place_of_stateless(self, named: str | None) -> LifecycleStage:
        revision = LATEST if named is None else named
        return LifecycleStage(self._judge_of(revision)) if revision in REVISIONS else self._unsupported(revision)

    def _unsupported(self, revision: str) -> LifecycleStage:
        """A request that names a revision which nobody can speak without a handshake, or at all."""
        opened = revision in REVISIONS and handshake(revision)
        wrong = violation(
            "protocol/unsupported-revision",
            f"/params/_meta/{REVISION_KEY.replace('/', '~1')}",
            expected=f"{LATEST}, which needs no handshake" if opened else f"one of {', '.join(REVISIONS)}",
            found=f'"{revision[:40]}"',
            revision=LATEST,
            hint=_needs_initialize(revision) if opened else None,
        )
        return LifecycleStage(self._judge_of(LATEST), (wrong,))

    def _place_of_initialize(self, message: dict[str, Any]) -> LifecycleStage:
        if self.phase in {"initializing", "negotiated"}:
            return LifecycleStage(self.judge, (self._again(),))
        return LifecycleStage(self._judge_of(_requested(message)))

    def _place_of_handshake(self, party: Party, method: str, named: str | None = None) -> LifecycleStage:
        """*named* is a revision with a handshake that the request names in its `_meta`."""
        if method == "ping" or self.phase == "stateless":
            return LifecycleStage(self.judge)
        if self.phase == "new":
            return LifecycleStage(self.judge, (self._before_initialize(party, method, named),))
        awaited = "the initialize result" if self.phase == "initializing" else "notifications/initialized"
        return LifecycleStage(self.judge, (self._before_initialized(f"only ping before {awaited}", method),))

    def _again(self) -> Violation:
        return violation(
            "protocol/initialize-again",
            "/method",
            expected="one initialize",
            found="another",
            revision=self.judge.revision,
        )

    def _before_initialize(self, party: Party, method: str, named: str | None = None) -> Violation:
        hint = None if named is None else _needs_initialize(named)
        return violation(
            "protocol/before-initialize",
            "/method",
            expected="initialize" if party is Party.CLIENT else "silence before the client's initialize",
            found=method[:60],
            revision=self.judge.revision,
            hint=hint if party is Party.CLIENT else "Wait for the client's initialize.",
        )

    def _before_initialized(self, expected: str, method: str) -> Violation:
        return violation(_EARLY, "/method", expected=expected, found=method[:60], revision=self.judge.revision)


def _needs_initialize(revision: str) -> str:
    """What to do about a request that names a *revision* with a handshake in its `_meta`."""
    return f"{revision} needs initialize; name {LATEST} here."


def _requested(message: dict[str, Any]) -> str:
    """The revision that an initialize request is judged by: the one it asks for, or the newest with a handshake."""
    params = message.get("params")
    asked = params.get("protocolVersion") if params is not None else None
    known = isinstance(asked, str) and asked in REVISIONS and handshake(asked)
    return str(asked) if known else LATEST_HANDSHAKE
