"""
The lists of tools of all servers and sessions, each kept once. No I/O, no clock.

A server gives every session the same list, and one of 5,000 tools takes three megabytes. So a page and a list are never
changed, and equal ones are one object: a session has only a reference to its list.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from os import urandom
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson

from assay.base.bounded import Shares
from assay.contracts.tool_contract import NO_SCHEMA, Contract
from assay.contracts.tool_pages import has_page_for_model
from assay.engine.fault import SchemaRefusal

MOST_QUARANTINED: Final = 500
"""Entries of one list that are quarantined one by one. The largest known server lists fewer than 300 tools."""

MOST_ENTRIES: Final = 250_000
"""
Tools of all pages and lists in memory together, some 700 bytes each: 175 MB. Without sharing, the default number of
sessions with the default number of tools would be 50 million.
"""

ENTRIES: Final = Shares(MOST_ENTRIES)
"""How many tools each owner has. What several owners have counts for the first one."""


class CountedTools:
    """Something that has tools, which count for its owner as long as it exists."""

    __slots__ = ("__weakref__", "_count", "_owner", "key")

    _entries = ENTRIES

    def __init__(self, key: bytes, count: int, owner: str) -> None:
        self.key = key
        """A digest of everything that it was made of."""
        self._count, self._owner = count, owner
        self._entries.add(owner, count)

    def __del__(self) -> None:
        self._entries.give_back(getattr(self, "_owner", ""), getattr(self, "_count", 0))


class ToolPage(CountedTools):
    """One page of a list."""

    __slots__ = ("entries", "has_room", "is_cut", "refused", "repeated", "size")

    def __init__(self, key: bytes, tools: list[Any], *, outputs: bool, owner: str) -> None:
        self.entries: list[tuple[int, Contract]] = []
        """The contract of each tool, with its number on the page."""
        self.repeated: list[tuple[int, str]] = []
        """The numbers and names of tools that have the name of another one before them."""
        self.refused: list[tuple[int, str, SchemaRefusal]] = []
        """What cannot be used of schemas that are compiled with the page: the number of the tool, the member, why."""
        self.is_cut = False
        """Whether so much is wrong that the rest of the page is not looked at."""
        names: set[str] = set()
        budget = _SchemaBudget()
        for number, tool in enumerate(tools):
            # An entry that is not a tool breaks the schema of the result; here it is only skipped.
            if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
                continue
            name = tool["name"]
            # Only within a page: a page that is fetched again has the same names, and its new definitions count.
            if name in names:
                self.repeated.append((number, name))
            else:
                names.add(name)
                self._add(number, contract_of(tool, outputs=outputs, owner=owner), budget)
            if len(self.repeated) + len(self.refused) > MOST_QUARANTINED:
                self.is_cut = True
                break
        self.size = sum(each.size for _, each in self.entries)
        """At most the bytes of the names and schemas."""
        self.has_room = all(each.has_room for _, each in self.entries)
        """Whether there was room for all schemas."""
        super().__init__(key, len(self.entries), owner)

    def _add(self, number: int, contract: Contract, budget: "_SchemaBudget") -> None:
        self.entries.append((number, contract))
        if budget.allows(contract):
            contract.is_listed = True
            contract.prepare()
            self.refused += [(number, member, each) for member, each in contract.unusable]


class ToolList(CountedTools):
    """Contracts by the name of their tool."""

    __slots__ = ("contracts", "is_late", "size")

    def __init__(self, key: bytes, contracts: Mapping[str, Contract], owner: str = "") -> None:
        super().__init__(key, len(contracts), owner)
        self.contracts: Mapping[str, Contract] = contracts
        self.is_late = not all(each.is_listed for each in contracts.values())
        """Whether some contracts are compiled only when their tool is called."""
        self.size = sum(each.size for each in contracts.values())
        """At most the bytes of the names and schemas."""

    def plus(self, contracts: Iterable[Contract], owner: str = "", *, in_order: bool = False) -> "ToolList | None":
        """
        Return the list with *contracts* added or replaced; None if *owner* has no room for it.

        Only with *in_order* it is sure to have them in that order.
        """
        return _list({**self.contracts, **{each.name: each for each in contracts}}, owner, in_order=in_order)

    def without(self, names: Collection[str], owner: str = "") -> "ToolList | None":
        """Return the list without some tools; None if *owner* has no room for it."""
        if not any(name in self.contracts for name in names):
            return self
        return _list({name: each for name, each in self.contracts.items() if name not in names}, owner)

    def asking_back(self, name: str, owner: str = "") -> "ToolList | None":
        """Return the list in which one tool is known to ask for input; None if *owner* has no room for it."""
        return _list({**self.contracts, name: self.contracts[name].asking_back()}, owner)


class NameSet(CountedTools):
    """Names of tools."""

    __slots__ = ("names",)

    def __init__(self, key: bytes, names: frozenset[str], owner: str = "") -> None:
        super().__init__(key, len(names), owner)
        self.names = names


_PAGES: Final[WeakValueDictionary[bytes, ToolPage]] = WeakValueDictionary()
_LISTS: Final[WeakValueDictionary[bytes, ToolList]] = WeakValueDictionary()
_NAMES: Final[WeakValueDictionary[bytes, NameSet]] = WeakValueDictionary()

EMPTY: Final = ToolList(b"", {})
NO_NAMES: Final = NameSet(b"", frozenset())


def page_of(tools: Sequence[Any], *, outputs: bool, owner: str = "") -> ToolPage | None:
    """Return a page with these *tools*; None if *owner* has no room. *outputs*: the revision has output schemas."""
    try:
        key = _digest(b"1" if outputs else b"0", orjson.dumps(tools))
    except orjson.JSONEncodeError:
        # Only values from Python, such as an integer beyond 64 bits: a value from a frame can be serialized.
        key = urandom(16)
    known = _PAGES.get(key)
    if known is None:
        if not ENTRIES.has_room(owner, len(tools)):
            return None
        known = ToolPage(key, list(tools), outputs=outputs, owner=owner)
        if known.has_room:
            # Otherwise others, for whom there is room, would get a page without schemas.
            _PAGES[key] = known
    return known


def list_of(contracts: Mapping[str, Contract]) -> ToolList:
    """Return *contracts*, which are never changed, as a list."""
    known = _LISTS.get(key := _digest(b"given", b"%d" % id(contracts)))
    # The list keeps the mapping, so that no other one has its identity meanwhile.
    if known is None or known.contracts is not contracts:
        known = _LISTS[key] = ToolList(key, contracts)
    return known


def names_of(names: Collection[str], owner: str = "") -> NameSet | None:
    """Return a set of *names*; None if *owner* has no room."""
    if not names:
        return NO_NAMES
    key = _digest(*(name.encode(errors="surrogatepass") for name in sorted(names)))
    known = _NAMES.get(key)
    if known is None:
        if not ENTRIES.has_room(owner, len(names)):
            return None
        known = _NAMES[key] = NameSet(key, frozenset(names), owner)
    return known


def contract_of(tool: Mapping[str, Any], *, outputs: bool, owner: str = "") -> Contract:
    """Return the contract of a *tool* as a list has it."""
    output = tool.get("outputSchema", NO_SCHEMA) if outputs else NO_SCHEMA
    has_page = "_meta" in tool and has_page_for_model(tool)
    support, schema = _task_support(tool), tool.get("inputSchema", NO_SCHEMA)
    return Contract(tool["name"], schema, output, support, has_page=has_page, owner=owner)


def _list(contracts: Mapping[str, Contract], owner: str, *, in_order: bool = False) -> ToolList | None:
    # By what it has, not by how it came about: the pages of a list can be requested in any order.
    keys = [each.key for each in contracts.values()]
    key = _digest(b"in order", *keys) if in_order else _digest(b"list", *sorted(keys))
    known = _LISTS.get(key)
    if known is None:
        if not ENTRIES.has_room(owner, len(contracts)):
            return None
        known = _LISTS[key] = ToolList(key, contracts, owner)
    return known


def _digest(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        # Each with its length, so that no two rows of parts have the same bytes.
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()


def _task_support(tool: Mapping[str, Any]) -> str:
    execution = tool.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    return support if support in ("optional", "required") else "forbidden"


class _SchemaBudget:
    """
    The part of one page that is compiled when it is listed; the rest is compiled on its first call.

    Real lists have up to 77 KB of schemas and ten patterns. A hostile one of a megabyte could take seconds and
    gigabytes: a pattern of ten characters can compile to a megabyte.
    """

    __slots__ = ("_bytes", "_patterns")

    def __init__(self) -> None:
        self._bytes = 128 << 10
        self._patterns = 32

    def allows(self, contract: Contract) -> bool:
        self._bytes -= contract.size
        if self._bytes >= 0:
            self._patterns -= contract.effort
        return self._bytes >= 0 and self._patterns >= 0
