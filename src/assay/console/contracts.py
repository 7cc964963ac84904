"""What a server lists: tools, prompts, resources, against the list before and the lock. Bounded. No I/O."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson

from assay.console.rows import HOW_TO_RECORD, cut, member_of, parsed
from assay.lock.compare import changes
from assay.lock.locked import KINDS, EntryKind, Locked, spelt
from assay.model.verdict import Party
from assay.records.record import Finding, Record
from assay.rules.sentences import sentence

LISTS: Final = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
"""By method: the member of its result with the entries, and the member of an entry that identifies it."""

MOST_BYTES: Final = 64 << 20
"""Maximal bytes of the lists of all servers. The largest known list of tools has some hundred kilobytes."""

MOST_ENTRIES: Final = 2_000
"""Maximal entries of one list."""

_LIST_BYTES: Final = MOST_BYTES // (2 * len(LISTS))
"""Maximal bytes of one list, 8 MiB: a server has four lists, and the one before of each. Pages have no end."""

_TOO_DEEP: Final = "its definition is nested too deeply to be shown"

_MOST_CHANGES: Final = 20
"""Changes of one entry that are shown."""

_KINDS: Final[dict[str, EntryKind]] = {kind.member: kind for kind in KINDS}

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


def tokens_of(size: int) -> int:
    """Return the estimated tokens of a definition of *size* bytes."""
    return -(-size // 4)


class ListedEntry(NamedTuple):
    """An entry as it was listed, and what the guard has found about it."""

    definition: dict[str, Any]
    text: bytes
    """The definition with sorted keys, for comparisons."""
    why: list[str]
    faults: list[dict[str, str]]
    """The place in the definition and the remedy of each finding."""
    judged: bool
    invalid: bool
    """Whether enforce mode quarantines it."""
    removed: bool
    """Whether it was removed from the list."""


class ServerListing:
    """One list of one server, and the complete one before it."""

    def __init__(self) -> None:
        self.entries: dict[str, ListedEntry] = {}
        self.before: dict[str, ListedEntry] | None = None
        self.time: float | None = None
        self.seq: int | None = None
        self._is_whole = False
        """Whether its last page has come."""
        self._bytes = 0
        self._left_out = False
        """Whether entries are missing, because there are too many."""

    @property
    def size(self) -> int:
        """Bytes of the definitions, and of those before."""
        return self._bytes + sum(len(each.text) for each in (self.before or {}).values())

    @property
    def tokens(self) -> int:
        """The estimated tokens of all definitions."""
        return sum(tokens_of(len(each.text)) for each in self.entries.values())

    def take(self, result: dict[str, Any], record: Record, seq: int, time: float) -> None:
        """Take one page: the first of a new list, or a further one of an incomplete list."""
        member, key = LISTS[record.method or ""]
        if self._is_whole or self.time is None:
            self.before = self.entries if self.time is not None else None
            self.entries = {}
            self._bytes, self._left_out = 0, False
        self.time, self.seq = time, seq
        for number, each in enumerate(result[member]):
            name = member_of(each, key)
            if isinstance(name, str):
                self._add(name, _entry(each, key, number, record))
        self._is_whole = not isinstance(result.get("nextCursor"), str)

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
        held = locked.of(kind) if locked is not None and kind is not None else {}
        complete = self._is_whole and not self._left_out
        return {
            "list": member,
            "time": self.time,
            "seq": self.seq,
            "complete": complete,
            "entries": [self._shown(name, each, kind, locked) for name, each in self.entries.items()],
            "removed": sorted({*(self.before or {}), *held} - self.entries.keys()) if complete else [],
            "tokens": self.tokens,
        }

    def _shown(self, name: str, entry: ListedEntry, kind: EntryKind | None, locked: Locked | None) -> dict[str, Any]:
        before = None if self.before is None else self.before.get(name)
        since = "" if self.before is None else _state([before.text] if before is not None else [], entry.text)
        accepted = locked.of(kind).get(name, ()) if locked is not None and kind is not None else ()
        lock = "" if locked is None or kind is None else _state([spelt(each) for each in accepted], entry.text)
        old = accepted[0] if lock == "changed" else before.definition if since == "changed" and before else None
        found = changes(kind, old, entry.definition)[:_MOST_CHANGES] if old is not None and kind is not None else []
        title = entry.definition.get("title")
        return {
            "name": name,
            "title": cut(title) or "",
            "since": since,
            "lock": lock,
            "changes": [{"weight": each.weight, "at": each.at, "what": cut(each.words) or ""} for each in found],
            "dialect": _dialect(entry.definition),
            "judged": entry.judged,
            "why": entry.why,
            "faults": entry.faults,
            "quarantined": entry.removed,
            "wouldQuarantine": entry.invalid and not entry.removed,
            "tokens": tokens_of(len(entry.text)),
            "readOnly": member_of(entry.definition, "annotations", "readOnlyHint") is True,
            "definition": entry.definition,
        }


def _state(before: list[bytes], now: bytes) -> str:
    """Return how a definition compares with its forms *before*."""
    return "same" if now in before else "changed" if before else "added"


def is_about(finding: Finding, number: int, name: str) -> bool:
    """Whether a finding is about the entry with this *number* of a list. Its name is cut in the finding."""
    place = finding.at.split("/")
    if place[1:2] == ["result"] and len(place) > 3 and place[3].isdecimal():
        return place[3] == str(number)
    return finding.entry is not None and finding.entry.name == name


def _entry(definition: dict[str, Any], key: str, number: int, record: Record) -> ListedEntry:
    """Return an entry of a list with the findings about it."""
    name = definition[key]
    found = [each for each in record.findings if each.entry is not None and is_about(each, number, name)]
    why = [cut(sentence(each)) or "" for each in found]
    try:
        # Among the levels of an answer around it.
        orjson.dumps([[[[[[[[definition]]]]]]]])
    except TypeError:
        definition, why = {key: name}, [*why, _TOO_DEEP]
    quarantines = any(each.done == "quarantine" for each in found)
    invalid = quarantines or any(each.name == name for each in record.quarantined)
    judged = all(each.rule not in _UNJUDGED for each in found)
    faults = [{"at": _within(each), "hint": each.hint} for each in found]
    return ListedEntry(definition, spelt(definition), why, faults, judged, invalid, invalid and not record.is_audited)


def _within(finding: Finding) -> str:
    """Return the place of a finding within the entry of a list."""
    return "".join(f"/{each}" for each in finding.at.split("/")[4:])


def _dialect(definition: dict[str, Any]) -> str:
    found = (member_of(definition, each, "$schema") for each in ("inputSchema", "outputSchema"))
    return next((cut(each) or "" for each in found if isinstance(each, str)), "")


class ServerLists:
    """All lists of one server."""

    def __init__(self) -> None:
        self._lists: dict[str, ServerListing] = {}
        self.size = 0
        """Bytes of all definitions."""
        self.tick = 0
        """When one of them last changed."""

    def take(self, record: Record, seq: int, time: float, tick: int) -> bool:
        """Take a page of a list; return whether *record* has one."""
        metadata, (member, _) = record.metadata, LISTS.get(record.method or "", ("", ""))
        if not member or metadata.kind != "result" or metadata.party is not Party.SERVER:
            return False
        result = member_of(parsed(metadata.frame), "result")
        if not isinstance(member_of(result, member), list):
            return False
        self._lists.setdefault(member, ServerListing()).take(result, record, seq, time)
        self.size, self.tick = sum(each.size for each in self._lists.values()), tick
        return True

    def tool(self, name: str) -> dict[str, Any] | None:
        """Return the definition of a tool; None if it is unknown."""
        entry = self._lists["tools"].entries.get(name) if "tools" in self._lists else None
        return None if entry is None else entry.definition

    def tools(self) -> tuple[int, int] | None:
        """Return the number of tools and their tokens; None if the list is unknown."""
        listing = self._lists.get("tools")
        return None if listing is None else (len(listing.entries), listing.tokens)

    def answer(self, locked: Locked | None) -> list[dict[str, Any]]:
        """Return the lists for a page, compared with the lock."""
        known = [member for member, _ in LISTS.values() if member in self._lists]
        return [self._lists[each].answer(each, locked) for each in known]
