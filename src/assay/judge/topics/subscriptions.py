"""
Subscriptions of 2026-07-28: the notifications that each one asked for, and those that a server sends.

A subscription that was forgotten, or opened in an unknown part of the conversation, is not judged.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from assay.judge.render import shown_id
from assay.judge.topics.table import Note, on
from assay.model.json_values import SUBSCRIPTION_KEY, Id, ident, items, obj, text
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.pointers import escaped

if TYPE_CHECKING:
    from assay.judge.state import State

LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

_URIS: Final = "resourceSubscriptions"
_TASK_IDS: Final = "taskIds"
_KINDS: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": _URIS,
    "notifications/tasks": _TASK_IDS,
}
"""The notifications of a subscription, and the member of the filter for each. Unknown extensions have others."""

_LISTED: Final[Mapping[str, tuple[str, str]]] = {
    _URIS: ("/params/uri", "a resource that the subscription asked for"),
    _TASK_IDS: ("/params/taskId", "a task of the subscription"),
}
"""The kinds that list what they are about: where a notification has it, and what is expected there."""

JUDGED: Final = frozenset({*_KINDS, ACKNOWLEDGED})

_AT: Final = f"/params/_meta/{escaped(SUBSCRIPTION_KEY)}"

_ENDED: Final = "Repeat the id of the subscriptions/listen request that the answer ends."

# The most subscriptions that are remembered, some 1 kB each; the official Python server allows 1,024 for all clients.
_MOST: Final = 1000

# The most characters of all URIs that are remembered of one conversation.
_MOST_CHARACTERS: Final = 256 * 1024

# The most comparisons of URIs for one acknowledgement, and their characters: some 0.2 µs each. The rest is not judged.
_MOST_COMPARED: Final = 200_000

# The longest URI that is compared, in characters. A longer one is not judged.
_LONGEST: Final = 4096


class Subscription:
    """One subscription: what it may get notifications about."""

    __slots__ = ("acknowledged", "exchange", "flags", "listed")

    def __init__(self, exchange: Exchange, wanted: Any) -> None:
        """*wanted* is the filter of the request; a server may read an invalid one, which is forwarded, as anything."""
        self.exchange = exchange
        self.acknowledged = False
        self.flags = frozenset(kind for kind in _KINDS.values() if not isinstance(wanted, dict) or wanted.get(kind))
        """The kinds that were asked for."""
        self.listed: dict[str, frozenset[str] | None] = dict.fromkeys(_LISTED)
        """The resources and the tasks: those asked for, later only tasks that the server agreed to. None: unknown."""
        if isinstance(wanted, dict):
            uris, tasks = wanted.get(_URIS, []), wanted.get(_TASK_IDS, [])
            if _are_few(uris) and all(map(_is_plain, uris)):
                self.listed[_URIS] = frozenset(map(_normal, uris))
            if _are_few(tasks):
                self.listed[_TASK_IDS] = frozenset(tasks)

    @property
    def characters(self) -> int:
        """The number of characters of its URIs and ids."""
        return sum(len(name) for known in self.listed.values() for name in known or ())

    def wants(self, kind: str, about: Any = None) -> bool:
        """
        Return whether it asked for notifications of *kind*, or may have.

        If the kind lists resources or tasks, the notification is *about* one of them.
        """
        if kind not in self.listed:
            return kind in self.flags
        known = self.listed[kind]
        if known is None or not isinstance(about, str):
            return True
        if kind == _TASK_IDS:
            return about in known
        updated = _normal(about) if len(about) <= _LONGEST else None
        return updated is None or updated in known or any(_is_below(updated, each) for each in known)

    def wants_all(self, kind: str, about: list[Any]) -> bool:
        """Return the same for all that a notification is *about*, up to the limit of comparisons."""
        left, asked = _MOST_COMPARED, self.listed[_URIS] or frozenset()
        for each in about:
            if not self.wants(kind, each):
                return False
            left -= len(text(each)) + (1 if text(each) in asked else 1 + len(asked))
            if left < 0:
                break
        return True


class Subscriptions:
    """The subscriptions of one conversation."""

    __slots__ = ("_characters", "_complete", "_known")

    def __init__(self, state: "State") -> None:
        self._known: dict[Id, Subscription] = {}
        self._characters = 0
        self._complete = state.whole
        """Whether every subscription is known."""

    def add(self, exchange: Exchange, wanted: Any) -> None:
        """Remember the filter of a request to listen."""
        self._forget(exchange.id)
        made = Subscription(exchange, wanted)
        if self._characters + made.characters > _MOST_CHARACTERS:
            made.listed = dict.fromkeys(_LISTED)
        self._known[exchange.id] = made
        self._characters += made.characters
        if len(self._known) > _MOST:
            self._forget_one()

    def _forget_one(self) -> None:
        """Forget a subscription that ended, or the oldest one: then an unknown subscription may be that one."""
        ended = (ident for ident, each in self._known.items() if each.exchange.state == "answered")
        oldest = next(ended, None)
        if oldest is None:
            oldest = next(iter(self._known))
            self._complete = False
        self._forget(oldest)

    def _forget(self, number: Id) -> None:
        gone = self._known.pop(number, None)
        self._characters -= gone.characters if gone is not None else 0

    def of(self, message: Mapping[str, Any]) -> Subscription | None:
        """Return the subscription that a notification names; None if it is not known."""
        number = _subscription_id(message)
        return self._known.get(number) if number is not None else None

    @property
    def is_complete(self) -> bool:
        """Whether a subscription that is not known was never opened."""
        alone = (each.exchange.alone for each in self._known.values() if each.exchange.state == "open")
        return self._complete or any(alone)

    def acknowledge(self, known: Subscription, agreed: Any) -> None:
        """Note what the server agreed to: nothing about other tasks is judged if that is unknown."""
        known.acknowledged = True
        asked, tasks = known.listed[_TASK_IDS], agreed.get(_TASK_IDS, []) if isinstance(agreed, dict) else None
        if asked is not None and isinstance(tasks, list):
            self._characters -= known.characters
            known.listed[_TASK_IDS] = asked.intersection(each for each in tasks if isinstance(each, str))
            self._characters += known.characters


@on("forwarded", LISTEN)
def open_subscription(state: "State", exchange: Exchange, params: dict[str, Any]) -> None:
    """Remember a subscription."""
    if not exchange.features.handshake and exchange.asker is Party.CLIENT:
        state.own(Subscriptions).add(exchange, params.get("notifications"))


@on("note", *JUDGED)
def check_notification(state: "State", note: Note, report: Report) -> None:
    """Report a notification that no open subscription asked for."""
    if note.sender.party is Party.CLIENT or note.rules.features.handshake:
        return
    subscriptions = state.own(Subscriptions)
    number, known = _subscription_id(note.params), subscriptions.of(note.params)
    if number is None:
        _wrong(report, _place_of_id(note.params), "the id of the subscription in _meta", "nothing")
    elif known is None:
        if subscriptions.is_complete and not state.parties[Party.CLIENT].may_have(number):
            _wrong(report, _AT, "the id of a subscription", "an unknown id")
    elif known.exchange.state == "answered":
        _wrong(report, _AT, "the id of an open subscription", "that of an ended one")
    elif known.exchange.state == "open":
        # Notifications may cross with the cancellation of their subscription.
        _check_wanted(known, note, report)


def _check_wanted(known: Subscription, note: Note, report: Report) -> None:
    if note.method == ACKNOWLEDGED:
        agreed = obj(note.params.get("notifications"))
        # Kinds of extensions are not judged.
        for kind in _KINDS.values():
            value = agreed.get(kind)
            if not known.wants_all(kind, items(value)) or (value is True and not known.wants(kind)):
                at = f"/params/notifications/{kind}"
                _wrong(report, at, "nothing beyond the subscription's request", kind)
        return
    if not known.acknowledged:
        _wrong(report, "/method", f"{ACKNOWLEDGED} first", note.method)
    kind = _KINDS[note.method]
    at, expected = _LISTED.get(kind, ("/method", "a change that the subscription asked for"))
    about = note.params.get(at.rpartition("/")[2])
    if not known.wants(kind, about):
        _wrong(report, at, expected, f'"{str(about)[:100]}"' if kind in _LISTED else note.method)


@on("noted", ACKNOWLEDGED)
def note_acknowledgement(state: "State", note: Note) -> None:
    """Keep what the server agreed to."""
    subscriptions = state.own(Subscriptions)
    known = subscriptions.of(note.params)
    if known is not None:
        subscriptions.acknowledge(known, note.params.get("notifications"))


@on("result", LISTEN)
def check_end(_: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report the answer that ends a subscription if it has another id than the request in its `_meta`."""
    number = _subscription_id(result)
    if number is not None and number != exchange.id and not exchange.features.handshake:
        at = f"/result/_meta/{escaped(SUBSCRIPTION_KEY)}"
        _wrong(report, at, f"{shown_id(exchange.id)}, the id of the request", shown_id(number), _ENDED)


def declared_by_listener(state: "State", note: Note) -> frozenset[str] | None:
    """Return the capabilities of the request to listen that a notification belongs to; None if it is not known."""
    known = state.own(Subscriptions).of(note.params)
    return known.exchange.declared if known is not None else None


def _wrong(report: Report, at: str, expected: str, found: str, hint: str | None = None) -> None:
    report.add("protocol/subscription", at, expected=expected, found=found, hint=hint)


def is_on_subscription(params: Mapping[str, Any]) -> bool:
    """Return whether a notification has the id of a subscription."""
    return SUBSCRIPTION_KEY in obj(params.get("_meta"))


def _subscription_id(message: Mapping[str, Any]) -> Id | None:
    """Return the id of the subscription of a notification: 1.0 is 1, "1" is another."""
    return ident(obj(message.get("_meta")).get(SUBSCRIPTION_KEY))


def _place_of_id(params: Mapping[str, Any]) -> str:
    """Return the place of the subscription's id, or the place where it is missing."""
    if "_meta" not in params:
        return "/params" if params else ""
    return _AT if SUBSCRIPTION_KEY in obj(params["_meta"]) else "/params/_meta"


def _is_plain(uri: str) -> bool:
    """Return whether *uri* is certainly one resource: a pattern may stand for many."""
    return "*" not in uri and "{" not in uri and "%7b" not in uri.lower()


def _are_few(names: Any) -> bool:
    """Return whether these are URIs or ids that can be remembered: very many of them would take seconds."""
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        return False
    return sum(map(len, names)) <= _MOST_CHARACTERS


def _normal(uri: str) -> str:
    """Return *uri* in one spelling: letters of scheme and host, escapes, a slash at the end."""
    return unquote(uri).casefold().rstrip("/")


def _is_below(uri: str, other: str) -> bool:
    """
    Return whether *uri* may be a sub-resource of *other*.

    The schema lets a server report one, without a definition: `file:///a/b` and `file:///a#b` are below `file:///a`,
    and `file:///ab` is not.
    """
    return uri.startswith(other) and not uri[len(other)].isalnum()
