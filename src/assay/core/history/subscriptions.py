"""
Subscriptions of 2026-07-28: the notifications that each one asked for, and those that a server sends. No I/O, no clock.

A subscription that was forgotten, or opened in an unknown part of the conversation, is not judged.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from assay.base.meta import SUBSCRIPTION_KEY
from assay.base.verdict import Exchange, Violation
from assay.core.history.reuse import ident_of
from assay.core.party_state import Side
from assay.core.render import shown_id
from assay.rules import violation

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

_AT: Final = f"/params/_meta/{SUBSCRIPTION_KEY.replace('/', '~1')}"

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

    def __init__(self, *, whole: bool) -> None:
        """*whole* means that the conversation is known from its beginning."""
        self._known: dict[str | int, _Subscription] = {}
        self._characters = 0
        self._complete = whole
        """Whether every subscription is known."""

    def opened(self, exchange: Exchange, params: Mapping[str, Any]) -> None:
        """Remember the filter of a request to listen."""
        self._forget(exchange.id)
        wanted = params.get("notifications")
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

    def _forget(self, ident: str | int) -> None:
        gone = self._known.pop(ident, None)
        self._characters -= gone.characters if gone is not None else 0

    def check(self, client: Side, method: str, params: Mapping[str, Any], revision: str) -> Iterator[Violation]:
        """Yield the violations of a notification of the kinds in `JUDGED`, which is sent to *client*."""
        ident = _ident(params)
        if ident is None:
            yield _wrong(_AT, "the id of the subscription", "nothing", revision)
            return
        known = self._known.get(ident)
        if known is None:
            complete = self._complete or any(each.exchange.alone for each in self._open())
            if complete and not client.irregular.may_have(ident):
                yield _wrong(_AT, "the id of a subscription", "an unknown id", revision)
        elif known.exchange.state == "answered":
            yield _wrong(_AT, "the id of an open subscription", "that of an ended one", revision)
        elif known.exchange.state == "open":
            # Notifications may cross with the cancellation of their subscription.
            yield from _check_open(known, method, params, revision)

    def _open(self) -> Iterator[_Subscription]:
        return (each for each in self._known.values() if each.exchange.state == "open")

    def declared_by(self, params: Mapping[str, Any]) -> frozenset[str] | None:
        """Return the capabilities of the request to listen that a notification belongs to; None if it is not known."""
        ident = _ident(params)
        known = self._known.get(ident) if ident is not None else None
        return known.exchange.declared if known is not None else None

    def noted(self, method: str, params: Mapping[str, Any]) -> None:
        """Note that a notification was forwarded."""
        ident = _ident(params) if method == ACKNOWLEDGED else None
        known = self._known.get(ident) if ident is not None else None
        if known is None:
            return
        known.acknowledged = True
        given = params.get("notifications")
        agreed = given.get(_TASK_IDS, []) if isinstance(given, dict) else None
        if known.tasks is not None and isinstance(agreed, list):
            self._characters -= known.characters
            known.tasks = known.tasks.intersection(each for each in agreed if isinstance(each, str))
            self._characters += known.characters


def check_end(exchange: Exchange, result: Mapping[str, Any]) -> list[Violation]:
    """Return the violation of the answer that ends a subscription: it has the id of the request twice."""
    ident = _ident(result)
    if ident is None or ident == exchange.id:
        return []
    at = f"/result/_meta/{SUBSCRIPTION_KEY.replace('/', '~1')}"
    wrong = _wrong(at, f"{shown_id(exchange.id)}, the id of the request", shown_id(ident), exchange.revision, _ENDED)
    return [wrong]


def _check_open(known: _Subscription, method: str, params: Mapping[str, Any], revision: str) -> Iterator[Violation]:
    if method == ACKNOWLEDGED:
        yield from _check_acknowledged(known, params, revision)
        return
    if not known.acknowledged:
        yield _wrong("/method", f"{ACKNOWLEDGED} first", method, revision)
    kind = _KINDS[method]
    at, expected = _LISTED.get(kind, ("/method", "a change that the subscription asked for"))
    about = params.get(at.rpartition("/")[2])
    if not known.wants(kind, about):
        yield _wrong(at, expected, f'"{str(about)[:100]}"' if kind in _LISTED else method, revision)


def _check_acknowledged(known: _Subscription, params: Mapping[str, Any], revision: str) -> Iterator[Violation]:
    """Yield the violations of an acknowledgement beyond the filter. Kinds of extensions are not judged."""
    given = params.get("notifications")
    agreed: Mapping[str, Any] = given if isinstance(given, dict) else {}
    for kind in _KINDS.values():
        value = agreed.get(kind)
        more = isinstance(value, list) and not known.wants_all(kind, value)
        if more or (value is True and not known.wants(kind)):
            at = f"/params/notifications/{kind}"
            yield _wrong(at, "nothing beyond the subscription's request", kind, revision)


def _wrong(at: str, expected: str, found: str, revision: str, hint: str | None = None) -> Violation:
    return violation("protocol/subscription", at, expected=expected, found=found, revision=revision, hint=hint)


def is_on_subscription(params: Mapping[str, Any]) -> bool:
    """Return whether a notification has the id of a subscription."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and SUBSCRIPTION_KEY in meta


def _ident(params: Mapping[str, Any]) -> str | int | None:
    """Return the id of the subscription of a notification: 1.0 is 1, "1" is another."""
    meta = params.get("_meta")
    return ident_of(meta.get(SUBSCRIPTION_KEY)) if isinstance(meta, dict) else None


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
