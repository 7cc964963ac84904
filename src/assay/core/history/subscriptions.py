"""
Subscriptions of 2026-07-28: which notifications each asked for, and what a server sends on it. No I/O, no clock.

What was forgotten is not judged, and neither is a subscription that was opened where nobody listened.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from assay.base.meta import SUBSCRIPTION_KEY
from assay.base.verdict import Exchange, Violation
from assay.core.history.remembered_values import ident_of
from assay.core.party_state import Side
from assay.core.render import shown_id
from assay.rules import violation

LISTEN: Final = "subscriptions/listen"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

_URIS: Final = "resourceSubscriptions"
_KINDS: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": _URIS,
}
"""The notifications that are sent on a subscription, and where the filter asks for each. Extensions have others."""

JUDGED: Final = frozenset({*_KINDS, ACKNOWLEDGED})

_UNKNOWN: Final = {**dict.fromkeys(_KINDS.values(), True), _URIS: None}
"""The filter of a request that is broken and passes all the same: a server may read anything into it."""

_AT: Final = f"/params/_meta/{SUBSCRIPTION_KEY.replace('/', '~1')}"

_ENDED: Final = "Repeat the id of the subscriptions/listen request that the answer ends."

# Subscriptions that are remembered, some 1 kB each; the official Python server lets all clients together have 1,024.
_MOST: Final = 1000

# Characters of all URIs that are remembered of one conversation.
_MOST_CHARACTERS: Final = 256 * 1024

# Comparisons of URIs that one acknowledgement may take, and characters of them: some 0.2 µs each. What comes after
# them is not judged.
_MOST_COMPARED: Final = 200_000

# Characters of a URI that is compared. A longer one is not judged.
_LONGEST: Final = 4096


class _Subscription:
    """What one request to listen asked for."""

    __slots__ = ("acknowledged", "exchange", "flags", "uris")

    def __init__(self, exchange: Exchange, wanted: Mapping[str, Any]) -> None:
        self.exchange = exchange
        self.acknowledged = False
        self.flags = frozenset(kind for kind in _KINDS.values() if kind != _URIS and wanted.get(kind))
        listed = wanted.get(_URIS, [])
        plain = isinstance(listed, list) and _are_few(listed) and all(map(_is_plain, listed))
        self.uris: frozenset[str] | None = frozenset(map(_normal, listed)) if plain else None
        """None if it is not known which resources they stand for."""

    @property
    def characters(self) -> int:
        """What its URIs take."""
        return sum(map(len, self.uris or ()))

    def wants(self, kind: str, uri: Any = None) -> bool:
        """Return whether it asked for notifications of *kind*, or may have; about *uri*, if that is what they tell."""
        if kind != _URIS:
            return kind in self.flags
        if self.uris is None or not isinstance(uri, str) or len(uri) > _LONGEST:
            return True
        updated = _normal(uri)
        return updated in self.uris or any(_is_below(updated, each) for each in self.uris)

    def wants_all(self, kind: str, uris: list[Any]) -> bool:
        """Return the same for each of *uris*, as far as that takes not too long."""
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
        """*whole* says that the conversation was heard from its beginning."""
        self._known: dict[str | int, _Subscription] = {}
        self._characters = 0
        self._complete = whole
        """Whether every subscription there is is known."""

    def opened(self, exchange: Exchange, params: Mapping[str, Any]) -> None:
        """Remember what a request to listen asks for."""
        self._forget(exchange.id)
        wanted = params.get("notifications")
        made = _Subscription(exchange, wanted if isinstance(wanted, dict) else _UNKNOWN)
        if self._characters + made.characters > _MOST_CHARACTERS:
            made.uris = None
        self._known[exchange.id] = made
        self._characters += made.characters
        if len(self._known) > _MOST:
            self._forget_one()

    def _forget_one(self) -> None:
        """Forget a subscription that was ended, or else the oldest: then one that is not known may be that."""
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
        """Yield what is wrong with one of the notifications that are `JUDGED`, which is sent to *client*."""
        ident = _ident(params)
        if ident is None:
            yield _wrong(_AT, "the id of the subscription", "nothing", revision)
            return
        known = self._known.get(ident)
        if known is None:
            complete = self._complete or any(each.exchange.alone for each in self._open())
            if complete and not client.irregular.may_have(ident):
                yield _wrong(_AT, "the id of a subscription", "that of no request to listen", revision)
        elif known.exchange.state == "answered":
            yield _wrong(_AT, "the id of an open subscription", "that of one that was ended", revision)
        elif known.exchange.state == "open":
            # What was cancelled or given up may cross with its notifications.
            yield from _check_open(known, method, params, revision)

    def _open(self) -> Iterator[_Subscription]:
        return (each for each in self._known.values() if each.exchange.state == "open")

    def noted(self, method: str, params: Mapping[str, Any]) -> None:
        """A notification has passed."""
        ident = _ident(params) if method == ACKNOWLEDGED else None
        if ident is not None and ident in self._known:
            self._known[ident].acknowledged = True


def check_end(exchange: Exchange, result: Mapping[str, Any]) -> list[Violation]:
    """Return what is wrong with the answer that ends a subscription: it has the id of the request twice."""
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
    if not known.wants(kind, params.get("uri")):
        expected = "a resource that the subscription asked for" if kind == _URIS else "what the subscription asked for"
        yield _wrong("/params/uri" if kind == _URIS else "/method", expected, _found(method, params), revision)


def _check_acknowledged(known: _Subscription, params: Mapping[str, Any], revision: str) -> Iterator[Violation]:
    """What is acknowledged is a part of what was asked for. Kinds of extensions are not ours to judge."""
    told = params.get("notifications")
    agreed: Mapping[str, Any] = told if isinstance(told, dict) else {}
    for kind in _KINDS.values():
        value = agreed.get(kind)
        more = isinstance(value, list) and not known.wants_all(kind, value)
        if more or (value is True and not known.wants(kind)):
            at = f"/params/notifications/{kind}"
            yield _wrong(at, "a part of what the subscription asked for", "more than that", revision)


def _found(method: str, params: Mapping[str, Any]) -> str:
    return f'"{str(params.get("uri"))[:100]}"' if _KINDS[method] == _URIS else method


def _wrong(at: str, expected: str, found: str, revision: str, hint: str | None = None) -> Violation:
    return violation("protocol/subscription", at, expected=expected, found=found, revision=revision, hint=hint)


def _ident(params: Mapping[str, Any]) -> str | int | None:
    """The id of the subscription that a notification is sent on: 1.0 is 1, "1" is another."""
    meta = params.get("_meta")
    return ident_of(meta.get(SUBSCRIPTION_KEY)) if isinstance(meta, dict) else None


def _is_plain(uri: str) -> bool:
    """Return whether *uri* stands for one resource, as far as anybody can say: a pattern may mean many."""
    return "*" not in uri and "{" not in uri and "%7b" not in uri.lower()


def _are_few(uris: list[Any]) -> bool:
    """Return whether these are URIs that can be remembered: to read very many of them takes seconds."""
    return all(isinstance(each, str) for each in uris) and sum(map(len, uris)) <= _MOST_CHARACTERS


def _normal(uri: str) -> str:
    """*uri* without what may be spelt in several ways: letters of scheme and host, escapes, a slash at the end."""
    return unquote(uri).casefold().rstrip("/")


def _is_below(uri: str, other: str) -> bool:
    """
    Return whether *uri* may be a sub-resource of *other*.

    The schema lets a server tell of one, and does not say what it is: `file:///a/b` and `file:///a#b` are below
    `file:///a`, and `file:///ab` is not.
    """
    return uri.startswith(other) and not uri[len(other)].isalnum()
