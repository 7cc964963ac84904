"""
Compares what a server lists in a conversation with its lock, page by page. No I/O, no clock.

Only results that list entries or identify the server are inspected. An unchanged entry costs one comparison of bytes.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from assay.base.meta import SERVER_KEY
from assay.base.verdict import Exchange, Party, Violation
from assay.contracts.tool_contracts import cursor_key
from assay.engine.pointers import escaped
from assay.lock.change import PHRASES, Change, describe, visible
from assay.lock.changes import BY_METHOD, ChangeKind
from assay.lock.locked import Locked, closest_changes, identity_changes, spelt
from assay.rules import violation

_MOST_CHANGES: Final = 5
"""Changes of one entry that are reported; the worst come first."""

_EXCERPT: Final = 70
"""Characters of a text that are reported."""

_COMPARED: Final = 256 << 10
"""Bytes of one page that are compared in detail, about 1.5 µs each. In real lists a few tools change at a time."""

_MOST_LISTINGS: Final = 16
"""Lists that are in progress at once, of all clients that share the inspection."""

_DISCOVER: Final = "server/discover"

_OPENING: Final = frozenset({"initialize", _DISCOVER})


class Inspection:
    """
    The lock of one server, and which of its entries have not been listed yet.

    Conversations that belong together, such as requests over stateless HTTP, share one of these.
    """

    def __init__(self, locked: Locked) -> None:
        self.locked = locked
        self._is_cut = False
        """Whether the pages of a list were forgotten."""
        self._listings: dict[tuple[str, bytes], _LockListing] = {}
        """The lists that were seen from their first page, by kind and by the cursor of the page that they need next."""

    def check(self, exchange: Exchange, result: Any) -> list[Violation]:
        """Return how the server's result of *exchange* differs from the lock."""
        if exchange.asker is not Party.CLIENT or not isinstance(result, dict):
            return []
        kind = BY_METHOD.get(exchange.method)
        if kind is not None:
            return [*self._check_meta(result), *self._check_page(kind, exchange, result)]
        return list(self._check_opening(exchange, result)) if exchange.method in _OPENING else []

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_page(self, kind: ChangeKind, exchange: Exchange, result: dict[str, Any]) -> Iterator[Violation]:
        page = result.get(kind.member)
        if not isinstance(page, list):
            return
        listing = self._listing(kind, exchange.detail)
        budget = _InspectionBudget(_COMPARED)
        here: set[str] = set()
        for number, entry in enumerate(page):
            key = entry.get(kind.key) if isinstance(entry, dict) else None
            # An entry without a name breaks the schema of the result.
            if isinstance(key, str):
                here.add(key)
                place = f"/result/{kind.member}/{number}"
                yield from self._check_entry(kind, key, entry, place, exchange.revision, budget)
        listing = listing._replace(missing=listing.missing - here)
        if "nextCursor" in result:
            self._keep(kind, result["nextCursor"], listing)
        elif listing.is_whole:
            yield from self._removed(kind, listing.missing)
        elif self._is_cut:
            yield self._forgotten(kind, exchange.revision)

    def _listing(self, kind: ChangeKind, cursor: bytes | None) -> "_LockListing":
        """Return the list that a page continues, which was requested with *cursor*; without one it is the first."""
        if cursor is not None:
            return self._listings.get((kind.member, cursor)) or _LockListing(frozenset(), is_whole=False)
        # Names that only some clients get are not reported as missing: this client may be one of the others.
        return _LockListing(frozenset(self.locked.of(kind)) - self.locked.only_for(kind).keys())

    def _keep(self, kind: ChangeKind, cursor: Any, listing: "_LockListing") -> None:
        if isinstance(cursor, str) and listing.is_whole:
            key = kind.member, cursor_key(cursor)
            self._listings.pop(key, None)
            self._listings[key] = listing
            if len(self._listings) > _MOST_LISTINGS:
                self._is_cut = True
                del self._listings[next(iter(self._listings))]

    def _forgotten(self, kind: ChangeKind, revision: str) -> Violation:
        """Return the violation of a list whose first pages are forgotten: it is not known what is missing in it."""
        return violation(
            "contract/unjudged",
            f"/result/{kind.member}",
            expected="a list whose pages are all remembered",
            found="too many lists at once",
            revision=revision,
        )

    def _check_entry(
        self, kind: ChangeKind, key: str, entry: dict[str, Any], at: str, revision: str, budget: "_InspectionBudget"
    ) -> Iterator[Violation]:
        known, now = self.locked.texts[kind.member].get(key), spelt(entry)
        if known is None:
            found = f'"{visible(key, _EXCERPT)}"'
            yield self._violation("lock/added", at, expected=f"a {kind.noun} that was locked", found=found)
        elif now not in known and not budget.allows(key, sum(map(len, known)) + len(now)):
            yield self._violation("lock/changed", at, expected="the locked definition", found="something else")
        elif now not in known:
            yield from self._check_changes(kind, key, entry, at, revision)

    def _check_changes(
        self, kind: ChangeKind, key: str, entry: dict[str, Any], at: str, revision: str
    ) -> Iterator[Violation]:
        found = closest_changes(kind, self.locked.forms(kind, key), entry, self.locked.revision, revision)
        for change in found[:_MOST_CHANGES]:
            yield self._changed(change, f"{kind.noun} {key}", at + change.at)
        if len(found) > _MOST_CHANGES:
            rest = f"{len(found) - _MOST_CHANGES:,} more changes"
            yield self._violation("lock/changed", at, expected="the locked definition", found=rest)

    def _removed(self, kind: ChangeKind, missing: frozenset[str]) -> Iterator[Violation]:
        for key in sorted(missing):
            yield self._violation(
                "lock/removed",
                f"/result/{kind.member}",
                expected=f'the {kind.noun} "{visible(key, _EXCERPT)}", which was locked',
                found="a list without it",
            )

    # ── the server itself ────────────────────────────────────────────────────────────────────────────────────────────

    def _check_opening(self, exchange: Exchange, result: dict[str, Any]) -> Iterator[Violation]:
        if exchange.method == _DISCOVER:
            yield from self._check_meta(result)
        else:
            yield from self._check_identity(result.get("serverInfo"), "/result/serverInfo")
        for change in identity_changes(self.locked, {}, result.get("instructions")):
            yield replace(self._changed(change, "server", "/result/instructions", "lock/server"), action="report")

    def _check_meta(self, result: dict[str, Any]) -> Iterator[Violation]:
        """Check the identity in `_meta`, which every result may have from 2026-07-28 on."""
        meta = result.get("_meta")
        if isinstance(meta, dict) and SERVER_KEY in meta:
            yield from self._check_identity(meta[SERVER_KEY], f"/result/_meta/{escaped(SERVER_KEY)}")

    def _check_identity(self, server: Any, at: str) -> Iterator[Violation]:
        if not isinstance(server, dict):
            return
        found = list(identity_changes(self.locked, server, self.locked.instructions))
        renamed = any(change.breaking for change in found)
        for change in found:
            each = self._changed(change, "server", f"{at}/{change.at.rpartition('/')[2]}", "lock/server")
            # Another version of a server with the same name is only reported.
            yield each if renamed else replace(each, action="report")

    def _changed(self, change: Change, what: str, at: str, rule: str = "lock/changed") -> Violation:
        words = f"{PHRASES[change.weight]}: {describe(change, _EXCERPT)}"
        locked = "the locked server" if rule == "lock/server" else "the locked definition"
        return self._violation(rule, at, expected=locked, found=words, detail=what)

    def _violation(self, rule: str, at: str, *, expected: str, found: str, detail: str = "") -> Violation:
        return violation(rule, at, expected=expected, found=found, detail=visible(detail, 100))


class _LockListing(NamedTuple):
    """A list that a server gives page by page, so far."""

    missing: frozenset[str]
    """Locked names that have not been listed yet."""
    is_whole: bool = True
    """Whether it was seen from its first page on."""


class _InspectionBudget:
    """The part of one page that is compared in detail: each name once, and a limited number of bytes."""

    __slots__ = ("_bytes", "_names")

    def __init__(self, most: int) -> None:
        self._bytes = most
        self._names: set[str] = set()

    def allows(self, name: str, size: int) -> bool:
        if name in self._names or size > self._bytes:
            return False
        self._names.add(name)
        self._bytes -= size
        return True
