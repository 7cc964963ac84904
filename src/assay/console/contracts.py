"""What each server lists: tools, prompts, resources, against the list before and the lock. Bounded. No I/O."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson

from assay.base.verdict import Party
from assay.console.findings import says
from assay.console.rows import HOW_TO_RECORD, cut
from assay.lock.changes import KINDS, ChangeKind, changes
from assay.lock.locked import Locked, spelt
from assay.records.record import Record

LISTS: Final = ("tools", "prompts", "resources", "resourceTemplates")
"""The lists of a server."""

MOST_BYTES: Final = 64 << 20
"""Maximal bytes of all lists. The largest known list of tools has some hundred kilobytes."""

MOST_ENTRIES: Final = 2_000
"""Maximal entries of one list."""

_LIST_BYTES: Final = MOST_BYTES // (2 * len(LISTS))
"""Maximal bytes of one list, 8 MiB: a server has four lists, and the one before of each. Pages have no end."""

_TOO_DEEP: Final = "its definition is nested too deeply to be shown"

_MOST_CHANGES: Final = 20
"""Changes of one entry that are shown."""

_PER_TOKEN: Final = 4
"""Characters of a token, as an estimate."""

_METHODS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_KEYS: Final = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
_KINDS: Final[dict[str, ChangeKind]] = {kind.member: kind for kind in KINDS}

NOT_RECORDED: Final = f"the lists are not recorded; {HOW_TO_RECORD}"

_UNJUDGED: Final = frozenset(
    {
        *("contract/schema", "contract/remote-ref", "contract/unknown-dialect", "contract/schema-size"),
        *("contract/unjudged", "contract/schema-cost", "contract/schema-cycle", "contract/duplicate-tool"),
    }
)
"""Rules about schemas that cannot be used, or not in full."""

LockOf = Callable[[str, str], Locked | None]
"""Returns the lock of a server by its name and its masked command or URL; None without one. Raises `ValueError`."""


class ListedEntry(NamedTuple):
    """An entry as it was listed."""

    definition: dict[str, Any]
    text: bytes
    """The definition with sorted keys, for comparisons."""
    why: tuple[str, ...] = ()
    judged: bool = True
    invalid: bool = False
    """Whether it is quarantined, or under audit would be."""
    removed: bool = False
    """Whether it was removed from the list."""


class ServerListing:
    """One list of one server, and the complete one before it."""

    def __init__(self) -> None:
        self.entries: dict[str, ListedEntry] = {}
        self.before: dict[str, ListedEntry] | None = None
        self.time: float | None = None
        self.seq: int | None = None
        self.complete = False
        self._bytes = 0
        self._left_out = False
        """Whether entries are missing, because there are too many."""

    @property
    def size(self) -> int:
        """Bytes of the definitions."""
        old = self.before or {}
        return sum(len(each.text) for each in (*self.entries.values(), *old.values()))

    def take(self, page: list[Any], key: str, record: Record, seq: int, time: float) -> None:
        """Take one page: the first of a new list, or a further one of an incomplete list."""
        if self.complete or self.time is None:
            self.before = self.entries if self.time is not None else None
            self.entries = {}
            self._bytes, self._left_out = 0, False
        self.time, self.seq = time, seq
        remarks, audited = _remarks(record), record.is_audited
        for each in page:
            name = each.get(key) if isinstance(each, dict) else None
            if isinstance(name, str):
                why, judged, invalid = remarks.get(name, ((), True, False))
                if _is_deep(each):
                    each, why = {key: name}, (*why, _TOO_DEEP)  # noqa: PLW2901 - what can be shown of it
                self._add(name, ListedEntry(each, spelt(each), why, judged, invalid, invalid and not audited))

    def _add(self, name: str, entry: ListedEntry) -> None:
        known = self.entries.get(name)
        size = self._bytes + len(entry.text) - (len(known.text) if known is not None else 0)
        if size > _LIST_BYTES or (known is None and len(self.entries) >= MOST_ENTRIES):
            self._left_out = True
            return
        self._bytes = size
        self.entries[name] = entry

    def answer(self, member: str, locked: Locked | None) -> dict[str, Any]:
        """Return the list for a page, compared with the lock and the list before."""
        kind = _KINDS.get(member)
        held = locked if kind is not None else None
        entries = [self._entry(name, each, member, held) for name, each in self.entries.items()]
        complete = self.complete and not self._left_out
        gone = set(self.before or {}) | (set(held.of(kind)) if held is not None and kind is not None else set())
        return {
            "list": member,
            "time": self.time,
            "seq": self.seq,
            "complete": complete,
            "entries": entries,
            "removed": sorted(gone - self.entries.keys()) if complete else [],
            "tokens": sum(each["tokens"] for each in entries),
        }

    def _entry(self, name: str, entry: ListedEntry, member: str, locked: Locked | None) -> dict[str, Any]:
        kind = _KINDS.get(member)
        before = None if self.before is None else self.before.get(name)
        since = "" if self.before is None else _state(None if before is None else before.text, entry.text)
        forms = locked.forms(kind, name) if locked is not None and kind is not None else []
        texts = [spelt(each) for each in forms]
        lock = "" if locked is None else "same" if entry.text in texts else _state(texts[0] if texts else None, b"")
        old = forms[0] if lock == "changed" else before.definition if since == "changed" and before else None
        definition = entry.definition
        annotations = definition.get("annotations")
        return {
            "name": name,
            "title": cut(definition.get("title")) or "",
            "since": since,
            "lock": lock,
            "changes": _changes(kind, old, definition) if old is not None else [],
            "dialect": _dialect(definition),
            "judged": entry.judged,
            "why": list(entry.why),
            "quarantined": entry.removed,
            "wouldQuarantine": entry.invalid and not entry.removed,
            "tokens": tokens_of(definition),
            "readOnly": isinstance(annotations, dict) and annotations.get("readOnlyHint") is True,
            "definition": definition,
        }


def _is_deep(definition: dict[str, Any]) -> bool:
    """Whether *definition* has too many levels to be written as JSON, among those of an answer around it."""
    try:
        orjson.dumps([[[[[[[[definition]]]]]]]])
    except TypeError:
        return True
    return False


def _state(before: bytes | None, now: bytes) -> str:
    return "added" if before is None else "same" if before == now else "changed"


def tokens_of(value: Any) -> int:
    """Return the estimated tokens of a definition."""
    return -(-len(orjson.dumps(value)) // _PER_TOKEN)


def _dialect(definition: dict[str, Any]) -> str:
    for member in ("inputSchema", "outputSchema"):
        schema = definition.get(member)
        found = schema.get("$schema") if isinstance(schema, dict) else None
        if isinstance(found, str):
            return cut(found) or ""
    return ""


def _changes(kind: ChangeKind | None, old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, str]]:
    if kind is None:
        return []
    found = changes(kind, old, new)
    return [{"weight": each.weight, "at": each.at, "what": cut(each.words) or ""} for each in found[:_MOST_CHANGES]]


def _remarks(record: Record) -> dict[str, tuple[tuple[str, ...], bool, bool]]:
    """Return what the guard has found about each entry: why, whether it is judged, whether enforce removes it."""
    found: dict[str, tuple[tuple[str, ...], bool, bool]] = {}
    for each in record.findings:
        if each.entry is not None:
            why, judged, invalid = found.get(each.entry.name, ((), True, False))
            found[each.entry.name] = (
                (*why, cut(says(each)) or ""),
                judged and each.rule not in _UNJUDGED,
                invalid or each.done == "quarantine",
            )
    for entry in record.quarantined:
        why, judged, _ = found.get(entry.name, ((), True, True))
        found[entry.name] = (why, judged, True)
    return found


class ContractBoard:
    """The lists of all servers."""

    def __init__(self, lock_of: LockOf | None = None) -> None:
        self._lock_of: LockOf = lock_of or (lambda _, __: None)
        self._lists: dict[int, dict[str, ServerListing]] = {}
        self._sizes: dict[int, int] = {}
        self.ticks: dict[int, int] = {}
        """When the lists of a server last changed."""

    def take(self, record: Record, seq: int, time: float, server: int, tick: int) -> None:
        """Take a page of a list, if *record* has one."""
        member, metadata = _METHODS.get(record.method or ""), record.metadata
        if member is None or metadata.kind != "result" or metadata.party is not Party.SERVER:
            return
        result = _result(metadata.frame) if metadata.frame is not None else None
        page = result.get(member) if result is not None else None
        if result is None or not isinstance(page, list):
            return
        listing = self._lists.setdefault(server, {}).setdefault(member, ServerListing())
        listing.take(page, _KEYS[member], record, seq, time)
        listing.complete = not isinstance(result.get("nextCursor"), str)
        self.ticks[server] = tick
        self._sizes[server] = sum(each.size for each in self._lists[server].values())
        while sum(self._sizes.values()) > MOST_BYTES and len(self._sizes) > 1:
            self.drop(next(each for each in self._sizes if each != server))

    def drop(self, server: int) -> None:
        """Forget a server."""
        for each in (self._sizes, self._lists, self.ticks):
            each.pop(server, None)

    def tool(self, server: int, name: str) -> dict[str, Any] | None:
        """Return the definition of a tool; None if it is unknown."""
        listing = self._lists.get(server, {}).get("tools")
        entry = listing.entries.get(name) if listing is not None else None
        return None if entry is None else entry.definition

    def tools(self, server: int) -> tuple[int, int] | None:
        """Return the number of tools of *server* and their tokens; None if the list is unknown."""
        listing = self._lists.get(server, {}).get("tools")
        if listing is None:
            return None
        size = sum(len(each.text) for each in listing.entries.values())
        return len(listing.entries), -(-size // _PER_TOKEN)

    def answer(self, server: int, name: str, label: str, count: int | None, lock: str) -> dict[str, Any]:
        """Return what *server* offers; *count* and *lock* are what its guard says."""
        lists = self._lists.get(server, {})
        state = lock or "none"
        locked: Locked | None = None
        try:
            locked = self._lock_of(name, label)
        except ValueError as error:
            state = str(error)
        if locked is not None:
            state = "locked"
        elif lock == "locked":
            state = "the lock of its guard is not in the working directory of the console"
        return {
            "server": server,
            "lock": state,
            "lists": [lists[each].answer(each, locked) for each in LISTS if each in lists],
            "count": count,
            "why": "" if lists else NOT_RECORDED,
        }

    def changed(self, tick: int) -> list[int]:
        """Return the servers whose lists have changed since *tick*."""
        return [server for server, at in self.ticks.items() if at > tick]


def _result(frame: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(frame)
    except orjson.JSONDecodeError:
        return None
    result = value.get("result") if isinstance(value, dict) else None
    return result if isinstance(result, dict) else None
