"""
Compares what a server lists in a conversation with its lock, page by page. No I/O, no clock.

Only results that list entries or identify the server are inspected. An unchanged entry costs one comparison of bytes.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from assay.lock.compare import (
    PHRASES,
    Change,
    closest_changes,
    describe,
    identity_changes,
    instruction_changes,
    visible,
)
from assay.lock.locked import BY_METHOD, EntryKind, Locked, spelt
from assay.model.json_values import SERVER_KEY
from assay.model.verdict import Exchange, Party, Violation
from assay.rules import violation
from assay.schema.pointers import escaped
from assay.schema.tool_contracts import cursor_key

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
        self._missing: dict[tuple[str, bytes], frozenset[str]] = {}
        """
        The locked names that a list has not had on its pages yet, by kind and by the cursor of the page to come.

        Only for lists that were seen from their first page.
        """

    def check(self, exchange: Exchange, result: Any) -> list[Violation]:
        """Return how the server's result of *exchange* differs from the lock."""
        if exchange.asker is not Party.CLIENT or not isinstance(result, dict):
            return []
        kind = BY_METHOD.get(exchange.method)
        if kind is not None:
            return [*self._check_meta(result), *self._check_page(kind, exchange, result)]
        return list(self._check_opening(exchange, result)) if exchange.method in _OPENING else []

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_page(self, kind: EntryKind, exchange: Exchange, result: dict[str, Any]) -> Iterator[Violation]:
        page = result.get(kind.member)
        if not isinstance(page, list):
            return
        missing = self._missing_before(kind, exchange.detail)
        texts, here, compared, left = self.locked.texts[kind.member], set[str](), set[str](), _COMPARED
        for number, entry in enumerate(page):
            key = entry.get(kind.key) if isinstance(entry, dict) else None
            if not isinstance(key, str):
                continue  # an entry without a name breaks the schema of the result
            here.add(key)
            at, known, now = f"/result/{kind.member}/{number}", texts.get(key), spelt(entry)
            if known is None:
                found = f'"{visible(key, _EXCERPT)}"'
                yield violation("lock/added", at, expected=f"a {kind.noun} that was locked", found=found)
            elif now not in known:
                size = sum(map(len, known)) + len(now)
                if key in compared or size > left:
                    yield violation("lock/changed", at, expected="the locked definition", found="something else")
                    continue
                compared.add(key)
                left -= size
                yield from self._check_changes(kind, key, entry, at, exchange.revision)
        if "nextCursor" in result:
            self._keep(kind, result["nextCursor"], None if missing is None else missing - here)
        elif missing is not None:
            yield from self._removed(kind, missing - here)
        elif self._is_cut:
            yield self._forgotten(kind, exchange.revision)

    def _missing_before(self, kind: EntryKind, cursor: bytes | None) -> frozenset[str] | None:
        """
        Return the locked names that were not on the pages before the one that was requested with *cursor*.

        None for a list that was not seen from its first page. The first page is requested without a cursor.
        """
        if cursor is not None:
            return self._missing.get((kind.member, cursor))
        # Names that only some clients get are not reported as missing: this client may be one of the others.
        return frozenset(self.locked.of(kind)) - self.locked.clients_of(kind).keys()

    def _keep(self, kind: EntryKind, cursor: Any, missing: frozenset[str] | None) -> None:
        if isinstance(cursor, str) and missing is not None:
            key = kind.member, cursor_key(cursor)
            self._missing.pop(key, None)
            self._missing[key] = missing
            if len(self._missing) > _MOST_LISTINGS:
                self._is_cut = True
                del self._missing[next(iter(self._missing))]

    def _forgotten(self, kind: EntryKind, revision: str) -> Violation:
        """Return the violation of a list whose first pages are forgotten: it is not known what is missing in it."""
        return violation(
            "contract/unjudged",
            f"/result/{kind.member}",
            expected="a list whose pages are all remembered",
            found="too many lists at once",
            revision=revision,
        )

    def _check_changes(
        self, kind: EntryKind, key: str, entry: dict[str, Any], at: str, revision: str
    ) -> Iterator[Violation]:
        found = closest_changes(kind, self.locked.of(kind)[key], entry, self.locked.revision, revision)
        for change in found[:_MOST_CHANGES]:
            yield self._changed(change, f"{kind.noun} {key}", at + change.at)
        if len(found) > _MOST_CHANGES:
            rest = f"{len(found) - _MOST_CHANGES:,} more changes"
            yield violation("lock/changed", at, expected="the locked definition", found=rest)

    def _removed(self, kind: EntryKind, missing: frozenset[str]) -> Iterator[Violation]:
        for key in sorted(missing):
            yield violation(
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
        for change in instruction_changes(self.locked, result.get("instructions")):
            yield replace(self._changed(change, "server", "/result/instructions", "lock/server"), action="report")

    def _check_meta(self, result: dict[str, Any]) -> Iterator[Violation]:
        """Check the identity in `_meta`, which every result may have from 2026-07-28 on."""
        meta = result.get("_meta")
        if isinstance(meta, dict) and SERVER_KEY in meta:
            yield from self._check_identity(meta[SERVER_KEY], f"/result/_meta/{escaped(SERVER_KEY)}")

    def _check_identity(self, server: Any, at: str) -> Iterator[Violation]:
        if not isinstance(server, dict):
            return
        found = list(identity_changes(self.locked, server))
        renamed = any(change.breaking for change in found)
        for change in found:
            each = self._changed(change, "server", f"{at}/{change.at.rpartition('/')[2]}", "lock/server")
            # Another version of a server with the same name is only reported.
            yield each if renamed else replace(each, action="report")

    def _changed(self, change: Change, what: str, at: str, rule: str = "lock/changed") -> Violation:
        words = f"{PHRASES[change.weight]}: {describe(change, _EXCERPT)}"
        locked = "the locked server" if rule == "lock/server" else "the locked definition"
        return violation(rule, at, expected=locked, found=words, detail=visible(what, 100))
