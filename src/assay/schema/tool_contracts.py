"""
The tools that a server has listed, as one conversation knows them. No I/O, no clock.

A server gives every session the same list, and one of 5,000 tools takes three megabytes. So a list is never changed,
and equal ones are one object: a session has only a reference to its list.

Every limit that is reached has a finding: a tool that is not remembered is not judged.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import orjson

from assay.model.bounded import Bounded, Shares
from assay.model.limits import DEFAULT
from assay.model.verdict import Violation
from assay.rules import violation
from assay.rules.report import Report
from assay.schema.fault import SchemaRefusal
from assay.schema.schema_index import RESOLVED
from assay.schema.tool_contract import Contract, Unusable
from assay.spec.revisions import features_of, handshake

MOST_QUARANTINED: Final = 500
"""Entries of one list that are quarantined one by one. The largest known server lists fewer than 300 tools."""

_LONGEST_QUARANTINED: Final = 1024
"""Characters of a quarantined name that is remembered; the specification allows 128."""

_MOST_LISTINGS: Final = 16
"""Listings that are in progress at once, of all clients that share what is known of the server."""

_MOST_WANTED: Final = 100
"""Tools that are remembered beyond the limit, because the guard has listed the tools for their sake."""

# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────

MOST_ENTRIES: Final = 250_000
"""
Tools of all lists in memory together, some 700 bytes each: 175 MB. Without sharing, the default number of sessions with
the default number of tools would be 50 million.
"""

ENTRIES: Final = Shares(MOST_ENTRIES)
"""How many tools each owner has. What several owners have counts for the first one."""


class ToolList:
    """Contracts by the name of their tool, in the order of the list, and the names of quarantined tools."""

    __slots__ = ("__weakref__", "_count", "_owner", "contracts", "is_late", "quarantined", "size")

    _counted = ENTRIES
    # An attribute, because the interpreter empties modules before it exits.

    def __init__(
        self, contracts: Mapping[str, Contract], quarantined: frozenset[str] = frozenset(), owner: str = ""
    ) -> None:
        """A list for *owner*, whether there is room for it or not; neither of its parts may change."""
        self._count, self._owner = len(contracts) + len(quarantined), owner
        self._counted.add(owner, self._count)
        self.contracts = contracts
        self.quarantined = quarantined
        self.is_late = not all(each.is_listed for each in contracts.values())
        """Whether some contracts are compiled only when their tool is called."""
        self.size = sum(each.size for each in contracts.values())
        """At most the bytes of the names and schemas."""

    def __del__(self) -> None:
        self._counted.give_back(self._owner, self._count)

    @classmethod
    def of(cls, contracts: Mapping[str, Contract], quarantined: frozenset[str], owner: str) -> "ToolList | None":
        """Return the list that has all this; None if *owner* has no room for it."""
        digest = blake2b(b"%d:" % len(contracts), digest_size=16)
        digest.update(b"".join(each.key for each in contracts.values()))
        # What is reported with a call depends on what was reported with the page of the tool.
        digest.update(bytes(each.is_listed for each in contracts.values()))
        for name in sorted(each.encode() for each in quarantined):
            # Each with its length, so that no two rows of names have the same bytes.
            digest.update(b"%d:%b" % (len(name), name))
        known = _LISTS.get(key := digest.digest())
        if known is None and ENTRIES.has_room(owner, len(contracts) + len(quarantined)):
            known = _LISTS[key] = cls(contracts, quarantined, owner)
        return known


_LISTS: Final[WeakValueDictionary[bytes, ToolList]] = WeakValueDictionary()

_EMPTY: Final = ToolList({})

# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_COMPILED_BYTES: Final = 128 << 10
_COMPILED_PATTERNS: Final = 32
"""
The part of one page that is compiled when it is listed; the rest is compiled on its first call.

Real lists have up to 77 KB of schemas and ten patterns. A hostile one of a megabyte could take seconds and gigabytes: a
pattern of ten characters can compile to a megabyte.
"""


class ToolPage(NamedTuple):
    """One page of a list."""

    contracts: dict[int, Contract]
    """The contract of each tool, by its number on the page."""
    repeated: dict[int, str]
    """The names of tools that have the name of another one before them, by their number."""
    is_cut: bool
    """Whether so much is wrong that the rest of the page is not looked at."""

    @classmethod
    def of(cls, tools: list[Any], *, outputs: bool, owner: str) -> "ToolPage":
        """Return the page with these *tools*, of a revision that has output schemas or not."""
        contracts: dict[int, Contract] = {}
        repeated: dict[int, str] = {}
        names: set[str] = set()
        size, effort, wrong = 0, 0, 0
        for number, tool in enumerate(tools):
            name = _name(tool)
            if name is None:
                # An entry that is not a tool breaks the schema of the result; here it is only skipped.
                continue
            # Only within a page: a page that is fetched again has the same names, and its new definitions count.
            if name in names:
                repeated[number] = name
            else:
                names.add(name)
                contract = contracts[number] = Contract(tool, outputs=outputs, owner=owner)
                size += contract.size
                effort += contract.effort if size <= _COMPILED_BYTES else 0
                if size <= _COMPILED_BYTES and effort <= _COMPILED_PATTERNS:
                    contract.is_listed = True
                    contract.prepare()
                    wrong += len(contract.unusable)
            if len(repeated) + wrong > MOST_QUARANTINED:
                return cls(contracts, repeated, is_cut=True)
        return cls(contracts, repeated, is_cut=False)

    def kept(self, unkept: Collection[int] = ()) -> dict[str, Contract]:
        """Return the contracts by tool, except those of these numbers."""
        return {each.name: each for number, each in self.contracts.items() if number not in unkept}


class ToolChain(NamedTuple):
    """The pages of one list so far, each of which was requested with the cursor of the page before."""

    tools: ToolList | None = _EMPTY
    """Their tools; None if they are more than are remembered, so that they cannot take the place of those before."""
    length: int = 0
    """How many tools these pages have."""
    size: int = 0
    """The bytes of their contracts."""


class Tools:
    """
    The tools that a server has listed, page by page.

    Each page is used at once. A listing is a chain: from the first page on, each page is requested with the cursor that
    the page before gave. At the end of a whole chain, tools that it did not have are forgotten; several clients that
    share this list may be anywhere in their chains meanwhile.
    """

    __slots__ = (
        "__weakref__", "_forgetful", "_limit", "_list", "_listings", "_most_bytes", "_reported", "_wanted", "_whole",
        "complete", "declared", "elsewhere", "generation", "is_late", "known", "listed_at", "lister", "owner", "topics",
        "waiting",
    )  # fmt: skip

    def __init__(self, limit: int, most_bytes: int = DEFAULT.contract_bytes, owner: str = "") -> None:
        """
        *limit* is how many tools are remembered, *most_bytes* how much text their schemas may have together.

        *owner* is the principal that they are counted for, within the bounds of the whole process.
        """
        self.owner = owner
        self.generation = 0
        """How often the list has changed: pages from before belong to another list."""
        self.known: Mapping[str, Contract] = _EMPTY.contracts
        """Contracts by tool. Another mapping takes its place when something changes."""
        self.is_late = False
        """Whether contracts may have to be compiled when their tool is called."""
        self.complete = False
        """Whether all pages have been received since the list last changed."""
        self.listed_at: float | None = None
        """When the last list that the guard requested itself had come, or had not, by the clock of its sessions; None
        before, and once the list has changed."""
        self.lister: Any = None
        """The session in which the guard requests the list itself, for all that share it; None if it does not."""
        self.waiting: list[Any] = []
        """The other sessions that wait for that list."""
        self.declared: Mapping[str, Any] | None = None
        """
        The capabilities that the server has declared in a conversation without handshake; None before. Kept here,
        because each request may be a conversation of its own, and these share what they know of the server.
        """
        self.elsewhere: Callable[[str], Mapping[str, Any] | None] | None = None
        """Finds the definition of a tool that this server has listed to another client, or later; None without one."""
        self.topics: dict[type, Any] = {}
        """What topics know of the server, such as its tasks, by the class that keeps it; shared for the same reason."""
        self._limit = limit
        self._most_bytes = most_bytes
        self._list = _EMPTY
        self._whole: ToolList | None = None
        """The last list that was received whole; None before, and once it has changed."""
        self._listings: Bounded[bytes, ToolChain] = Bounded(_MOST_LISTINGS)
        """The listings in progress, by the cursor of the page that they need next."""
        self._forgetful = False
        """Whether more tools were quarantined than are remembered."""
        self._reported: set[str] = set()
        """Tools whose unusable schemas were reported with a call."""
        self._wanted: frozenset[str] = frozenset()

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def learn(
        self,
        tools: list[Any],
        report: Report,
        *,
        cursor: bytes | None = None,
        following: bytes | None = None,
        over_http: bool = False,
    ) -> None:
        """
        Learn one page of a list, and report the violations of its tools.

        *cursor* is the key of the cursor that the page was requested with, None for the first page; *following* is the
        key of the cursor that it gives, None for the last page. *over_http* says whether the client uses HTTP.
        """
        # Without the policy of *report*: it decides in the end, about no more than is reported.
        found, revision = Report(report.revision, report.budget), str(report.revision)
        learned = tools[: self._limit + MOST_QUARANTINED + 1]
        if not ENTRIES.has_room(self.owner, len(learned)):
            self.complete = False
            _report_no_room(report)
            return
        page = ToolPage.of(learned, outputs=features_of(revision).output_schemas, owner=self.owner)
        before = ToolChain() if cursor is None else self._listings.get(cursor)
        listing = self._extended(before or ToolChain(), page)
        whole = listing.tools if before is not None and following is None else None
        unkept = self._unkept(before, page) if whole is None else {}
        # A list has these names, so that they are not quarantined unless they are again.
        names = {each.name for each in page.contracts.values()}
        quarantined = self._list.quarantined - names
        self._reported -= names
        if whole is None:
            taken = {**self.known, **page.kept(unkept)}
        else:
            # A tool of an earlier page that was quarantined stays so, until a page has it again.
            taken = {name: each for name, each in whole.contracts.items() if name not in quarantined}
        fits = self._keep(taken, quarantined)
        is_cut = page.is_cut or len(learned) < len(tools)
        _check_page(page, unkept, found, over_http=over_http)
        if not fits:
            _report_no_room(found)
        report.take(_limited(found, is_cut=is_cut))
        self.complete = whole is not None and fits and not is_cut
        if self.complete:
            self._check_order(report)
        elif before is not None and following is not None:
            self._listings.pop(following, None)
            self._listings[following] = listing

    def _extended(self, before: ToolChain, page: ToolPage) -> ToolChain:
        """Return the listing with one more page."""
        count = before.length + len(page.contracts)
        size = before.size + sum(each.size for each in page.contracts.values())
        tools = before.tools
        if page.is_cut or count > self._limit or size > self._most_bytes:
            tools = None
        elif tools is not None:
            tools = ToolList.of({**tools.contracts, **page.kept()}, frozenset(), self.owner)
        return ToolChain(tools, count, size)

    def _unkept(self, before: ToolChain | None, page: ToolPage) -> dict[int, tuple[str, str]]:
        """
        Return the numbers of the tools on *page* that are not remembered, each with the limit that they exceed and what
        to do about it.

        A page of a list that begins, or continues *before*, is used beside the list that is known, so that twice as
        much is kept for a while.
        """
        too_many = f"at most {self._limit:,} tools", "List fewer tools, or increase limits.tools."
        shorten = "Shorten the schemas, or increase limits.contract_bytes."
        too_long = f"at most {self._most_bytes:,} bytes of schemas", shorten
        count, size = (0, 0) if before is None else (before.length, before.size)
        times = 1 if before is None else 2
        known, known_size = len(self.known), self._list.size
        unkept: dict[int, tuple[str, str]] = {}
        for number, contract in page.contracts.items():
            count, size = count + 1, size + contract.size
            is_new = contract.name not in self.known
            if contract.name in self._wanted:
                continue
            if count > self._limit or (is_new and known >= times * self._limit):
                unkept[number] = too_many
            elif size > self._most_bytes or (is_new and known_size + contract.size > times * self._most_bytes):
                unkept[number] = too_long
            elif is_new:
                known, known_size = known + 1, known_size + contract.size
        return unkept

    def _keep(self, contracts: Mapping[str, Contract], quarantined: frozenset[str]) -> bool:
        """Know these contracts, and these quarantined tools; return False, and change nothing, without room for it."""
        made = ToolList.of(contracts, quarantined, self.owner)
        if made is not None:
            self._take(made)
        return made is not None

    def _take(self, tools: ToolList) -> None:
        self._list = tools
        self.known, self.is_late = tools.contracts, tools.is_late

    def _check_order(self, report: Report) -> None:
        """Report a list that has the tools of the one before in another order."""
        before, self._whole = self._whole, self._list
        if before is None or before is self._list or not features_of(report.revision).ordered_lists:
            return
        if before.contracts.keys() != self.known.keys():
            return
        for was, name in zip(before.contracts, self.known, strict=True):
            if was != name:
                found = f"{_shown(name)} where {_shown(was)} was"
                expected = "the same tools in the same order as before"
                report.add("protocol/list-order", "/result/tools", expected=expected, found=found)
                return

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def expect(self, tools: ToolList) -> None:
        """Judge by *tools* until the server has listed its own."""
        if not self.known:
            self._take(tools)

    def recall(self, name: object, revision: str) -> None:
        """Take the definition of a tool that is called in *revision* from `elsewhere`, if it is not known here."""
        if self.elsewhere is None or not isinstance(name, str) or not self.is_missing(name):
            return
        tool = self.elsewhere(name)
        if tool is not None:
            page = ToolPage.of([tool], outputs=features_of(revision).output_schemas, owner=self.owner)
            self._keep({**self.known, **page.kept()}, self._list.quarantined)

    def is_missing(self, name: str) -> bool:
        """Whether a tool may exist of which nothing is known, so that its calls are not judged."""
        return name not in self.known and not self.complete and not self.is_quarantined(name)

    def want(self, name: str) -> None:
        """Remember a tool when it is listed, also beyond the limit."""
        if len(self._wanted) < _MOST_WANTED:
            self._wanted |= {name}

    def late(self, name: object) -> Contract | None:
        """Return the contract of a tool if it has to be compiled before a call can be judged."""
        contract = self.known.get(name) if isinstance(name, str) else None
        return contract if contract is not None and not contract.ready else None

    def unusable(self, contract: Contract) -> Unusable:
        """Compile *contract*, and return its unusable parts, unless they were reported before."""
        contract.prepare()
        if not contract.unusable or contract.is_listed or contract.name in self._reported:
            return ()
        self._reported.add(contract.name)
        return contract.unusable

    def forget(self, page: list[Any], numbers: Collection[int]) -> None:
        """Quarantine the tools of these *numbers* on a page that was just learned: they were not forwarded."""
        # Later entries were not learned.
        learned = page[: self._limit + MOST_QUARANTINED + 1]
        kept = {_name(tool) for number, tool in enumerate(learned) if number not in numbers}
        names = {_name(page[number]) for number in numbers} - kept
        self._quarantine({name for name in names if name is not None})

    def quarantine(self, name: str) -> None:
        """Quarantine a tool: it must not be called until a list brings it back without faults."""
        self._quarantine({name})

    def _quarantine(self, names: set[str]) -> None:
        short = {name for name in names if len(name) <= _LONGEST_QUARANTINED}
        quarantined = self._list.quarantined | short
        if len(quarantined) > self._limit:
            quarantined = self._list.quarantined
        if not names <= quarantined:
            self._forgetful = True
        if self._keep({name: each for name, each in self.known.items() if name not in names}, quarantined):
            return
        # Without room for the list without them, nothing is known rather than too much.
        self.complete = False
        if not self._keep({}, quarantined):
            self._take(_EMPTY)
            self._forgetful = True

    @property
    def size(self) -> int:
        """The bytes of all known definitions."""
        return self._list.size

    def is_quarantined(self, name: str) -> bool:
        """Whether a tool is quarantined. After too many to remember, every unknown tool counts as quarantined."""
        return name in self._list.quarantined or (self._forgetful and name not in self.known)

    def handed_down(self) -> "Tools":
        """Return a copy for a restarted server: what is known stays until it lists its own tools."""
        made = Tools(self._limit, self._most_bytes, self.owner)
        made._take(self._list)
        made._forgetful, made._wanted, made.elsewhere = self._forgetful, self._wanted, self.elsewhere
        made.topics = self._outliving()
        return made

    def renew(self) -> None:
        """Forget what topics know of a server that was restarted; what is known of its tools stays."""
        self.topics = self._outliving()
        self.changed()

    def _outliving(self) -> dict[type, Any]:
        return {kind: each for kind, each in self.topics.items() if getattr(kind, "OUTLIVES_SERVER", False)}

    def asked_back(self, contract: Contract) -> None:
        """Note that the tool of *contract* asks for input, here and not in other conversations."""
        if self.known.get(contract.name) is contract and not contract.asks_back:
            self._keep({**self.known, contract.name: contract.asking_back()}, self._list.quarantined)

    def changed(self) -> None:
        """Record that the list has changed: what is known stays until it is listed again."""
        self.complete = False
        self.listed_at = self._whole = None
        self._listings.clear()
        self.generation += 1


def cursor_key(cursor: str) -> bytes:
    """Return what a cursor is known by: it may have 64 KiB."""
    return blake2b(cursor.encode(errors="surrogatepass"), digest_size=16).digest()


def _name(tool: Any) -> str | None:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else None


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_USUAL: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MOST_SHOWN: Final = 3
"""Unusual names of one page that are shown; the others are counted."""


def schema_faults(
    refusal: SchemaRefusal, at: str, revision: str, *, over_http: bool, detail: str = ""
) -> tuple[Violation, ...]:
    """
    Return the violation of an unusable schema, if it matters in *revision*.

    *at* is the place of the schema; with *detail*, which says where the schema is, that of another value.
    """
    is_header = refusal.rule == "contract/header"
    if is_header and handshake(revision):
        # Before 2026-07-28 no header repeats an argument.
        return ()
    dangles = refusal.expected == RESOLVED
    wrong = violation(
        refusal.rule,
        at if detail else at + refusal.at,
        expected=refusal.expected,
        found=refusal.found,
        revision=revision,
        detail=detail,
        hint=f"Define {refusal.found} in the same schema, or correct the reference." if dangles else None,
    )
    # A client that sends no headers has no reason to drop a tool for a header.
    return (replace(wrong, action="report") if is_header and not over_http else wrong,)


def _check_page(page: ToolPage, unkept: Mapping[int, tuple[str, str]], found: Report, *, over_http: bool) -> None:
    """Report what is wrong with the tools of *page*, in their order; no call of the *unkept* ones is judged."""
    revision = str(found.revision)
    odd = {number: each.name for number, each in page.contracts.items() if not _USUAL.fullmatch(each.name)}
    first_odd = next(iter(odd), None) if features_of(revision).tool_names else None
    for number in sorted({*page.contracts, *page.repeated}):
        at, contract = f"/result/tools/{number}", page.contracts.get(number)
        if contract is None:
            name = f"{_shown(page.repeated[number])} again"
            found.add("contract/duplicate-tool", f"{at}/name", expected="a unique name", found=name)
            continue
        for member, refusal in contract.unusable:
            found.take(schema_faults(refusal, f"{at}/{member}", revision, over_http=over_http))
        if number == first_odd:
            # One violation for all of them.
            names = ", ".join(map(_shown, islice(odd.values(), _MOST_SHOWN)))
            rest = f" and {len(odd) - _MOST_SHOWN} more" if len(odd) > _MOST_SHOWN else ""
            expected = "1 to 128 letters, digits, underscores, hyphens and dots (ASCII)"
            found.add("protocol/tool-name", f"{at}/name", expected=expected, found=names + rest)
        if number in unkept:
            expected, hint = unkept[number]
            name = f"{_shown(contract.name)} beyond them"
            found.add("contract/schema-size", at, expected=expected, found=name, hint=hint)


def _limited(found: Report, *, is_cut: bool) -> list[Violation]:
    """Return what was *found*; of too much, the first."""
    listed = found.found
    if not is_cut and len(listed) <= MOST_QUARANTINED:
        return listed
    # Each is reported, quarantined and remembered; a list with hundreds of them is useless.
    is_useless = sum(each.action == "quarantine" for each in listed) > MOST_QUARANTINED
    del listed[MOST_QUARANTINED + 1 :]
    expected, hint = f"at most {MOST_QUARANTINED} invalid entries", "Correct the named entries."
    found.add("contract/unjudged", "/result/tools", expected=expected, found="more", hint=hint)
    if is_useless:
        listed[-1] = replace(listed[-1], action="refuse")
    return listed


def _report_no_room(report: Report) -> None:
    """Report a list that this process has no room for."""
    report.add(
        "contract/schema-size",
        "/result/tools",
        expected="room for the tools in the guard's memory",
        found="too many tools in all sessions",
        hint="List fewer tools, and the same ones to every client.",
    )


def _shown(name: str) -> str:
    return orjson.dumps(name[:60]).decode()
