"""
Pages for the results of tools, by the extension `io.modelcontextprotocol/ui`: their metadata, and their content.

No I/O, no clock. A tool with wrong metadata still works as text, so it is never quarantined for that.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from assay.base.verdict import Exchange, Violation
from assay.contracts.tool_pages import FLAT_KEY, PAGE_SCHEME
from assay.core.history.answer_rules import INVALID_PARAMS
from assay.engine.budget import Budget
from assay.engine.pointers import escaped
from assay.engine.wording import shown
from assay.ladder.protocol import Judge
from assay.rules import violation
from assay.spec.extensions.official import APPS

_MOST: Final = 1000
"""Pages that are remembered. The largest known server has fewer than 300 tools, and tools share pages."""

_LONGEST: Final = 2048
"""Characters of the URI of a page that is remembered."""

_NOT_FOUND: Final = frozenset({-32002, INVALID_PARAMS})
"""The codes for a resource that does not exist, of older revisions and of newer ones."""


class PageRead(NamedTuple):
    """A request for the page of a tool."""

    uri: str


class AppPages:
    """The pages of the tools of one server."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: set[str] = set()

    def take_read(self, exchange: Exchange, uri: str) -> None:
        """Note that the page of a tool is asked for, so that the answer must have it."""
        if uri in self._known:
            exchange.beyond = PageRead(uri)

    def learn(self, pages: Iterable[str], *, first: bool) -> None:
        """Note that a list of tools was forwarded; *first* means that it is the first page of the list."""
        if first:
            self._known.clear()
        self._known.update(islice((each for each in pages if len(each) <= _LONGEST), _MOST - len(self._known)))

    def changed(self) -> None:
        """Forget all pages: the server has reported that its tools have changed."""
        self._known.clear()

    def check_error(self, exchange: Exchange, code: int) -> list[Violation]:
        """Return the violation of an error to a request for the page of a tool."""
        read = exchange.beyond
        is_lost = isinstance(read, PageRead) and read.uri in self._known and code in _NOT_FOUND
        return [lost(code, exchange.revision)] if is_lost else []


_MIME_TYPE: Final = "text/html;profile=mcp-app"

_CSP: Final = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_ADDS_DIRECTIVES: Final = re.compile(r"""[\s;,'"]""")

Numbered = Iterable[tuple[int, Mapping[str, Any]]]
"""Entries of a list, each with its number."""


def check_tools(tools: Numbered, judge: Judge, budget: Budget) -> Iterator[Violation]:
    """Yield the violations of what a list of tools has about pages."""
    for number, tool in tools:
        yield from _check_tool(tool["_meta"], f"/result/tools/{number}/_meta", judge, budget)


def check_resources(pages: Numbered, judge: Judge, budget: Budget) -> Iterator[Violation]:
    """Yield the violations of the pages in `resources/list`."""
    for number, page in pages:
        at = f"/result/resources/{number}"
        yield from _check_type("apps/listed-mime-type", page, at, judge.revision)
        yield from _check_page(page.get("_meta"), f"{at}/_meta", judge, budget)


def check_contents(pages: Numbered, judge: Judge, budget: Budget) -> Iterator[Violation]:
    """Yield the violations of the pages in the contents of a resource."""
    for number, page in pages:
        at = f"/result/contents/{number}"
        yield from _check_type("apps/mime-type", page, at, judge.revision)
        yield from _check_page(page.get("_meta"), f"{at}/_meta", judge, budget)


def _check_tool(meta: Any, at: str, judge: Judge, budget: Budget) -> Iterator[Violation]:
    if not isinstance(meta, dict) or not ("ui" in meta or FLAT_KEY in meta):
        return
    ui, flat = meta.get("ui"), meta.get(FLAT_KEY)
    if "ui" in meta:
        yield from _check_definition("UiToolMeta", ui, f"{at}/ui", judge, budget)
    nested = ui.get("resourceUri") if isinstance(ui, dict) else None
    for where, uri in ((f"{at}/ui/resourceUri", nested), (f"{at}/{escaped(FLAT_KEY)}", flat)):
        if isinstance(uri, str) and not uri.startswith(PAGE_SCHEME):
            yield _wrong_uri(where, uri, judge.revision)
    # The official SDK sends both, so that older clients find the page.
    if FLAT_KEY in meta and flat != nested:
        yield violation(
            "apps/flat-key",
            f"{at}/{escaped(FLAT_KEY)}",
            expected="the page in _meta.ui.resourceUri" if nested is None else shown(nested),
            found=f"the deprecated key {FLAT_KEY}" if nested is None else shown(flat),
            revision=judge.revision,
        )


def _check_type(rule: str, page: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
    kind = page.get("mimeType")
    if kind != _MIME_TYPE:
        found = "nothing" if kind is None else shown(kind)
        yield violation(rule, f"{at}/mimeType", expected=f'"{_MIME_TYPE}"', found=found, revision=revision)


def check_content(result: Mapping[str, Any], revision: str) -> Iterator[Violation]:
    """Yield the violation of a result that only the page of its tool can show."""
    content = result.get("content")
    if not isinstance(content, list) or result.get("isError") is True or any(map(_is_meaningful, content)):
        return
    found = "only empty text" if content else "an empty array"
    yield violation("apps/content", "/result/content", expected="content for the model", found=found, revision=revision)


def lost(code: int, revision: str) -> Violation:
    """Return the violation of a server that does not find the page of one of its tools."""
    return violation(
        "apps/not-found",
        "/error/code",
        expected="the page that tools/list names for a tool",
        found=str(code),
        revision=revision,
    )


def _check_page(meta: Any, at: str, judge: Judge, budget: Budget) -> Iterator[Violation]:
    if not isinstance(meta, dict) or "ui" not in meta:
        return
    ui = meta["ui"]
    yield from _check_definition("UiResourceMeta", ui, f"{at}/ui", judge, budget)
    csp = ui.get("csp") if isinstance(ui, dict) else None
    origins_by_use = csp if isinstance(csp, dict) else {}
    for name in _CSP:
        origins = origins_by_use.get(name)
        for number, origin in enumerate(origins if isinstance(origins, list) else ()):
            if isinstance(origin, str) and _ADDS_DIRECTIVES.search(origin):
                yield _wrong_origin(f"{at}/ui/csp/{name}/{number}", origin, judge.revision)


def _check_definition(name: str, value: Any, at: str, judge: Judge, budget: Budget) -> list[Violation]:
    faults, _ = judge.extension_definition(APPS, name).check("apps/meta", value, at, judge.revision, budget)
    return faults


def _is_meaningful(block: Any) -> bool:
    """Return whether a block of content shows something; only text can be empty."""
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return not isinstance(text, str) or bool(text.strip())


def _wrong_uri(at: str, uri: str, revision: str) -> Violation:
    expected = f"a URI that begins with {PAGE_SCHEME}"
    return violation("apps/resource-uri", at, expected=expected, found=shown(uri), revision=revision)


def _wrong_origin(at: str, origin: str, revision: str) -> Violation:
    expected = "an origin without white space, semicolons, commas and quotes"
    return violation("apps/csp", at, expected=expected, found=shown(origin), revision=revision)
