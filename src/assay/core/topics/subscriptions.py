"""
Subscriptions of 2026-07-28: the notifications that each one asked for, and those that a server sends.

A subscription that was forgotten, or opened in an unknown part of the conversation, is not judged.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from assay.base.json_values import SUBSCRIPTION_KEY, Id, ident, items, obj
from assay.base.verdict import Exchange, Party
from assay.core.render import shown_id
from assay.core.topics.table import Note, on
from assay.engine.pointers import escaped
from assay.rules.report import Report

if TYPE_CHECKING:
    from assay.core.state import State

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

_UNKNOWN: Final = {**dict.fromkeys(_KINDS.values(), True), **dict.fromkeys(_LISTED)}
"""The filter of an invalid request that is forwarded: a server may read it as anything."""

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


class _Subscription:
    """The filter of one subscription."""

    __slots__ = ("acknowledged", "exchange", "flags", "tasks", "uris")

    def __init__(self, exchange: Exchange, wanted: Mapping[str, Any]) -> None:
        self.exchange = exchange
        self.acknowledged = False
        self.flags = frozenset(kind for kind in _KINDS.values() if kind not in _LISTED and wanted.get(kind))
        listed = wanted.get(_URIS, [])
        plain = isinstance(listed, list) and _are_few(listed) and all(map(_is_plain, listed))
        self.uris: frozenset[str] | None = frozenset(map(_normal, listed)) if plain else None
        """None if the resources are unknown."""
        tasks = wanted.get(_TASK_IDS, [])
        self.tasks: frozenset[str] | None = frozenset(tasks) if isinstance(tasks, list) and _are_few(tasks) else None
        """The ids of tasks: those that were asked for, later those that the server agreed to. None if unknown."""

    @property
    def characters(self) -> int:
        """The number of characters of its URIs and ids."""
        return sum(map(len, self.uris or ())) + sum(map(len, self.tasks or ()))

    def wants(self, kind: str, uri: Any = None) -> bool:
        """
        Return whether it asked for notifications of *kind*, or may have; about *uri*, for notifications about a
        resource or a task.
        """
        if kind == _TASK_IDS:
            return self.tasks is None or not isinstance(uri, str) or uri in self.tasks
        if kind != _URIS:
            return kind in self.flags
        if self.uris is None or not isinstance(uri, str) or len(uri) > _LONGEST:
            return True
        updated = _normal(uri)
        return updated in self.uris or any(_is_below(updated, each) for each in self.uris)

    def wants_all(self, kind: str, uris: list[Any]) -> bool:
        """Return the same for each of *uris*, up to the limit of comparisons."""
        left, asked = _MOST_COMPARED, self.uris or frozenset()
        for uri in uris:
            if not self.wants(kind, uri):
                return False
            text = uri if isinstance(uri, str) else ""
            left -= len(text) + (1 if text in asked else 1 + len(asked))
            if left < 0:
                break
        return True


class Subscriptions:
    """The subscriptions of one conversation."""

    __slots__ = ("_characters", "_complete", "_known")

    def __init__(self, state: "State") -> None:
        self._known: dict[Id, _Subscription] = {}
        self._characters = 0
        self._complete = state.whole
        """Whether every subscription is known."""

    def add(self, exchange: Exchange, wanted: Any) -> None:
        """Remember the filter of a request to listen."""
        self._forget(exchange.id)
        made = _Subscription(exchange, wanted if isinstance(wanted, dict) else _UNKNOWN)
        if self._characters + made.characters > _MOST_CHARACTERS:
            made.uris = made.tasks = None
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

    def of(self, message: Mapping[str, Any]) -> _Subscription | None:
        """Return the subscription that a notification names; None if it is not known."""
        number = _subscription_id(message)
        return self._known.get(number) if number is not None else None

    @property
    def is_complete(self) -> bool:
        """Whether a subscription that is not known was never opened."""
        return self._complete or any(each.exchange.alone for each in self._open())

    def _open(self) -> Iterator[_Subscription]:
        return (each for each in self._known.values() if each.exchange.state == "open")

    def agreed(self, known: _Subscription, tasks: list[Any]) -> None:
        """Note to which tasks of a subscription the server agreed."""
        if known.tasks is not None:
            self._characters -= known.characters
            known.tasks = known.tasks.intersection(each for each in tasks if isinstance(each, str))
            self._characters += known.characters


@on("forwarded", LISTEN)
def open_subscription(state: "State", exchange: Exchange, params: dict[str, Any]) -> None:
    """Remember a subscription."""
    if not exchange.features.handshake and exchange.asker is Party.CLIENT:
        state.own(Subscriptions).add(exchange, params.get("notifications"))


@on("note", *JUDGED)
def check_notification(state: "State", note: Note, report: Report) -> None:
    """Report a notification that no open subscription asked for."""
    if note.side.party is Party.CLIENT or note.rules.features.handshake:
        return
    subscriptions = state.own(Subscriptions)
    number, known = _subscription_id(note.params), subscriptions.of(note.params)
    if number is None:
        _wrong(report, _AT, "the id of the subscription", "nothing")
    elif known is None:
        if subscriptions.is_complete and not state.sides[Party.CLIENT].may_have(number):
            _wrong(report, _AT, "the id of a subscription", "an unknown id")
    elif known.exchange.state == "answered":
        _wrong(report, _AT, "the id of an open subscription", "that of an ended one")
    elif known.exchange.state == "open":
        # Notifications may cross with the cancellation of their subscription.
        _check_wanted(known, note, report)


def _check_wanted(known: _Subscription, note: Note, report: Report) -> None:
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
    if known is None:
        return
    known.acknowledged = True
    given = note.params.get("notifications")
    tasks = given.get(_TASK_IDS, []) if isinstance(given, dict) else None
    if isinstance(tasks, list):
        subscriptions.agreed(known, tasks)


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


def _is_plain(uri: str) -> bool:
    """Return whether *uri* is certainly one resource: a pattern may stand for many."""
    return "*" not in uri and "{" not in uri and "%7b" not in uri.lower()


def _are_few(uris: list[Any]) -> bool:
    """Return whether these are URIs that can be remembered: very many of them would take seconds."""
    return all(isinstance(each, str) for each in uris) and sum(map(len, uris)) <= _MOST_CHARACTERS


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
