"""
The tools that a server has listed, as one conversation knows them. No I/O, no clock.

Every limit that is reached has a finding: a tool that is not remembered is not judged.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from assay.base.bounded import Bounded
from assay.base.limits import DEFAULT
from assay.base.verdict import Violation
from assay.contracts.tool_contract import Contract, Unusable
from assay.contracts.tool_lists import (
    EMPTY,
    MOST_QUARANTINED,
    NO_NAMES,
    ToolList,
    ToolPage,
    list_of,
    names_of,
    page_of,
)
from assay.engine.fault import SchemaRefusal
from assay.engine.schema_index import RESOLVED
from assay.rules import violation
from assay.spec.revisions import features_of, handshake

_USUAL: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_SHOWN: Final = 3
"""Names of one page that are shown; the others are counted."""


def check_names(page: ToolPage, revision: str) -> Iterator[tuple[int, Violation]]:
    """Yield one violation for all unusual names of *page*, with the number of the first."""
    if not features_of(revision).tool_names:
        return
    odd = [(number, each.name) for number, each in page.entries if not _USUAL.fullmatch(each.name)]
    if not odd:
        return
    shown = ", ".join(orjson.dumps(name[:60]).decode() for _, name in odd[:_SHOWN])
    rest = f" and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
    number = odd[0][0]
    yield (
        number,
        violation(
            "protocol/tool-name",
            f"/result/tools/{number}/name",
            expected="1 to 128 letters, digits, underscores, hyphens and dots (ASCII)",
            found=shown + rest,
            revision=revision,
        ),
    )


_LONGEST_QUARANTINED: Final = 1024
"""Characters of a quarantined name that is remembered; the specification allows 128."""

_MOST_LISTINGS: Final = 16
"""Listings that are in progress at once, of all clients that share what is known of the server."""

_MOST_WANTED: Final = 100
"""Tools that are remembered beyond the limit, because the guard has listed the tools for their sake."""


class ToolChain(NamedTuple):
    """The pages of one list so far, each of which was requested with the cursor of the page before."""

    pages: tuple[ToolPage, ...] = ()
    length: int = 0
    """How many tools these pages have."""
    size: int = 0
    """The bytes of their contracts."""
    is_cut: bool = False
    """Whether the list has more than is remembered, so that it cannot take the place of the one before."""


class Tools:
    """
    The tools that a server has listed, page by page.

    Each page is used at once. A listing is a chain: from the first page on, each page is requested with the cursor that
    the page before gave. At the end of a whole chain, tools that it did not have are forgotten; several clients that
    share this list may be anywhere in their chains meanwhile.
    """

    __slots__ = (
        "__weakref__", "_forgetful", "_limit", "_list", "_listings", "_most_bytes", "_quarantined", "_reported",
        "_wanted", "_whole", "complete", "declared", "elsewhere", "generation", "is_late", "known", "listed_at",
        "lister", "owner", "topics", "waiting",
    )  # fmt: skip

    def __init__(self, limit: int, most_bytes: int = DEFAULT.contract_bytes, owner: str = "") -> None:
        """
        *limit* is how many tools are remembered, *most_bytes* how much text their schemas may have together.

        *owner* is the principal that they are counted for, within the bounds of the whole process.
        """
        self.owner = owner
        self.generation = 0
        """How often the list has changed: pages from before belong to another list."""
        self.known: Mapping[str, Contract] = EMPTY.contracts
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
        self._list = EMPTY
        self._whole: ToolList | None = None
        """The last list that was received whole; None before, and once it has changed."""
        self._listings: Bounded[bytes, ToolChain] = Bounded(_MOST_LISTINGS)
        """The listings in progress, by the cursor of the page that they need next."""
        self._quarantined = NO_NAMES
        self._forgetful = False
        self._reported: set[str] = set()
        """Tools whose unusable schemas were reported with a call."""
        self._wanted: frozenset[str] = frozenset()

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def learn(
        self,
        tools: list[Any],
        *,
        cursor: bytes | None,
        following: bytes | None,
        outputs: bool,
        revision: str,
        over_http: bool = False,
    ) -> Iterator[Violation]:
        """
        Learn one page of a list, and yield the violations of its tools.

        *cursor* is the key of the cursor that the page was requested with, None for the first page; *following* is the
        key of the cursor that it gives, None for the last page. *outputs* says whether the revision has output schemas,
        *over_http* whether the client uses HTTP.
        """
        learned = tools[: self._limit + MOST_QUARANTINED + 1]
        page = page_of(learned, outputs=outputs, owner=self.owner)
        if page is None:
            self.complete = False
            yield _no_room(revision)
            return
        before = ToolChain() if cursor is None else self._listings.get(cursor)
        listing = self._extended(before or ToolChain(), page)
        self._release(frozenset(each.name for _, each in page.entries))
        is_whole = before is not None and following is None and not listing.is_cut
        unkept = {} if is_whole else self._unkept(before, page)
        taken = [each for one in listing.pages for _, each in one.entries] if is_whole else _kept(page, unkept)
        # A tool of an earlier page that was quarantined stays so, until a page has it again.
        taken = [each for each in taken if each.name not in self._quarantined.names]
        fits = self._take((EMPTY if is_whole else self._list).plus(taken, self.owner, in_order=is_whole))
        is_cut = page.is_cut or len(learned) < len(tools)
        found = [*self._faults(page, revision, over_http=over_http), *check_names(page, revision)]
        found += [(number, self._beyond(number, why, page, revision)) for number, why in unkept.items()]
        if not fits:
            found.append((len(tools), _no_room(revision)))
        yield from _limited(found, revision, is_cut=is_cut)
        self.complete = is_whole and fits and not is_cut
        if self.complete:
            yield from self._check_order(revision)
        elif before is not None and following is not None:
            self._listings.pop(following, None)
            self._listings[following] = listing

    def _extended(self, before: ToolChain, page: ToolPage) -> ToolChain:
        """Return the listing with one more page; without any, if it has more than is remembered."""
        count, size = before.length + len(page.entries), before.size + page.size
        if before.is_cut or page.is_cut or count > self._limit or size > self._most_bytes:
            return ToolChain(length=count, size=size, is_cut=True)
        # There may be any number of empty pages.
        return ToolChain((*before.pages, page), count, size) if page.entries else before

    def _unkept(self, before: ToolChain | None, page: ToolPage) -> dict[int, str]:
        """
        Return the numbers of the tools on *page* that are not remembered, each with the limit that they exceed.

        A page of a list that begins, or continues *before*, is used beside the list that is known, so that twice as
        much is kept for a while.
        """
        count, size = (0, 0) if before is None else (before.length, before.size)
        times = 1 if before is None else 2
        known, known_size = len(self.known), self._list.size
        unkept: dict[int, str] = {}
        for number, contract in page.entries:
            count, size = count + 1, size + contract.size
            is_new = contract.name not in self.known
            if contract.name in self._wanted:
                continue
            if count > self._limit or (is_new and known >= times * self._limit):
                unkept[number] = "tools"
            elif size > self._most_bytes or (is_new and known_size + contract.size > times * self._most_bytes):
                unkept[number] = "bytes"
            elif is_new:
                known, known_size = known + 1, known_size + contract.size
        return unkept

    def _take(self, made: ToolList | None) -> bool:
        if made is None:
            return False
        self._list = made
        self.known, self.is_late = made.contracts, made.is_late
        return True

    def _release(self, names: frozenset[str]) -> None:
        """A list has these names, so that they are not quarantined unless they are again."""
        if not names.isdisjoint(self._quarantined.names):
            self._quarantined = names_of(self._quarantined.names - names, self.owner) or self._quarantined
        self._reported -= names

    def _faults(self, page: ToolPage, revision: str, *, over_http: bool) -> Iterator[tuple[int, Violation]]:
        """Yield what is wrong with the tools of *page*, each with the number of its tool."""
        for number, name in page.repeated:
            yield (
                number,
                violation(
                    "contract/duplicate-tool",
                    f"/result/tools/{number}/name",
                    expected="a unique name",
                    found=f"{_shown(name)} again",
                    revision=revision,
                ),
            )
        for number, member, refusal in page.refused:
            if concerns(refusal, revision):
                found = refused(refusal, f"/result/tools/{number}/{member}", revision)
                yield number, found if over_http else over_stdio(found)

    def _beyond(self, number: int, why: str, page: ToolPage, revision: str) -> Violation:
        """Return the violation of a tool that cannot be remembered; its calls are not judged."""
        name = next(each.name for place, each in page.entries if place == number)
        if why == "tools":
            expected, hint = f"at most {self._limit:,} tools", "List fewer tools, or increase limits.tools."
        else:
            expected = f"at most {self._most_bytes:,} bytes of schemas"
            hint = "Shorten the schemas, or increase limits.contract_bytes."
        found = f"{_shown(name)} beyond them"
        at = f"/result/tools/{number}"
        return violation("contract/schema-size", at, expected=expected, found=found, revision=revision, hint=hint)

    def _check_order(self, revision: str) -> Iterator[Violation]:
        """Yield the violation of a list with the tools of the one before in another order."""
        before, self._whole = self._whole, self._list
        if before is None or before is self._list or not features_of(revision).ordered_lists:
            return
        if before.contracts.keys() != self.known.keys():
            return
        for was, name in zip(before.contracts, self.known, strict=True):
            if was != name:
                yield violation(
                    "protocol/list-order",
                    "/result/tools",
                    expected="the same tools in the same order as before",
                    found=f"{_shown(name)} where {_shown(was)} was",
                    revision=revision,
                )
                return

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def adopt(self, contracts: Mapping[str, Contract], declared: Mapping[str, Any]) -> None:
        """Use *contracts* and what was *declared* without a listing, for our own tools."""
        self.declared = declared
        self._take(list_of(contracts))
        self.complete = True

    def expect(self, contracts: Mapping[str, Contract]) -> None:
        """Judge by *contracts*, which are never changed, until the server has listed its tools."""
        if not self.known:
            self._take(list_of(contracts))

    def recall(self, name: object, *, outputs: bool) -> None:
        """Take the definition of a called tool from `elsewhere`, if it is not known here; *outputs* as in `learn`."""
        if self.elsewhere is None or not isinstance(name, str) or not self.is_missing(name):
            return
        tool = self.elsewhere(name)
        page = None if tool is None else page_of([tool], outputs=outputs, owner=self.owner)
        if page is not None:
            self._take(self._list.plus(_kept(page, {}), self.owner))

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
        if not self._take(self._list.without(names, self.owner)):
            # Without room for the list without them, nothing is known rather than too much.
            self._take(EMPTY)
            self.complete = False
        short = {name for name in names if len(name) <= _LONGEST_QUARANTINED}
        every = self._quarantined.names | short
        made = names_of(every, self.owner) if len(every) <= self._limit else None
        if made is not None:
            self._quarantined = made
        if made is None or short != names:
            self._forgetful = True

    @property
    def size(self) -> int:
        """The bytes of all known definitions."""
        return self._list.size

    def is_quarantined(self, name: str) -> bool:
        """Whether a tool is quarantined. After too many to remember, every unknown tool counts as quarantined."""
        return name in self._quarantined.names or (self._forgetful and name not in self.known)

    def handed_down(self) -> "Tools":
        """Return a copy for a restarted server: what is known stays until it lists its own tools."""
        made = Tools(self._limit, self._most_bytes, self.owner)
        made._take(self._list)
        made._quarantined, made._forgetful = self._quarantined, self._forgetful
        made._wanted, made.elsewhere = self._wanted, self.elsewhere
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
            self._take(self._list.asking_back(contract.name, self.owner))

    def changed(self) -> None:
        """Record that the list has changed: what is known stays until it is listed again."""
        self.complete = False
        self.listed_at = self._whole = None
        self._listings.clear()
        self.generation += 1


def _shown(name: str) -> str:
    return orjson.dumps(name[:60]).decode()


def _kept(page: ToolPage, unkept: Collection[int]) -> list[Contract]:
    """Return the contracts of *page*, except those of these numbers."""
    return [each for number, each in page.entries if number not in unkept]


def cursor_key(cursor: str) -> bytes:
    """Return what a cursor is known by: it may have 64 KiB."""
    return blake2b(cursor.encode(errors="surrogatepass"), digest_size=16).digest()


def _limited(found: list[tuple[int, Violation]], revision: str, *, is_cut: bool) -> Iterator[Violation]:
    """Yield what was *found*, in the order of the tools; of too much, the first."""
    listed = [each for _, each in sorted(found, key=lambda one: one[0])]
    yield from listed[: MOST_QUARANTINED + 1]
    if is_cut or len(listed) > MOST_QUARANTINED:
        # Each is reported, quarantined and remembered; a list with hundreds of them is useless.
        useless = sum(each.action == "quarantine" for each in listed) > MOST_QUARANTINED
        yield _too_many("/result/tools", revision, useless=useless)


def _no_room(revision: str) -> Violation:
    """Return the violation of a list that this process has no room for."""
    return violation(
        "contract/schema-size",
        "/result/tools",
        expected="room for the tools in the guard's memory",
        found="too many tools in all sessions",
        revision=revision,
        hint="List fewer tools, and the same ones to every client.",
    )


def _too_many(at: str, revision: str, *, useless: bool) -> Violation:
    """Return the violation of a list with too many faults; *useless* if too many entries would be quarantined."""
    wrong = violation(
        "contract/unjudged",
        at,
        expected=f"at most {MOST_QUARANTINED} invalid entries",
        found="more",
        revision=revision,
        hint="Correct the named entries.",
    )
    return replace(wrong, action="refuse") if useless else wrong


def over_stdio(wrong: Violation) -> Violation:
    """Return *wrong* for a client that sends no headers: it has no reason to drop a tool for a header."""
    return replace(wrong, action="report") if wrong.rule == "contract/header" else wrong


def _name(tool: Any) -> str | None:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else None


def concerns(refusal: SchemaRefusal, revision: str) -> bool:
    """Whether *refusal* applies in *revision*: before 2026-07-28 no header repeats an argument."""
    return refusal.rule != "contract/header" or not handshake(revision)


def refused(refusal: SchemaRefusal, at: str, revision: str, detail: str = "") -> Violation:
    """Return the violation of an unusable schema; *detail* says where it is, if not at *at*."""
    place = at if detail else at + refusal.at
    return violation(
        refusal.rule,
        place,
        expected=refusal.expected,
        found=refusal.found,
        revision=revision,
        detail=detail,
        hint=_remedy(refusal),
    )


def _remedy(refusal: SchemaRefusal) -> str | None:
    """Return the remedy for a dangling reference; None for the remedy of the rule."""
    if refusal.expected != RESOLVED:
        return None
    return f"Define {refusal.found} in the same schema, or correct the reference."
