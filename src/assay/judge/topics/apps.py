"""
Pages for the results of tools, by the extension `io.modelcontextprotocol/ui`: their metadata, and their content.

A tool with wrong metadata still works as text, so it is never quarantined for that.
"""

import re
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from assay.judge.revision_rules import RevisionRules
from assay.judge.topics.errors import INVALID_PARAMS, NO_RESOURCE
from assay.judge.topics.extensions import leaves_out
from assay.judge.topics.table import Note, on
from assay.model.json_values import items, obj, text
from assay.model.limits import Limits
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report
from assay.schema.pointers import escaped
from assay.schema.tool_contract import FLAT_KEY, PAGE_SCHEME, page_of
from assay.schema.wording import shown
from assay.spec.extensions import APPS

if TYPE_CHECKING:
    from assay.judge.state import State

_MOST: Final = 1000
"""Pages that are remembered. The largest known server has fewer than 300 tools, and tools share pages."""

_LONGEST: Final = 2048
"""Characters of the URI of a page that is remembered."""

_MIME_TYPE: Final = "text/html;profile=mcp-app"

_CSP: Final = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_ADDS_DIRECTIVES: Final = re.compile(r"""[\s;,'"]""")


class PageRead(NamedTuple):
    """A request for the page of a tool."""

    uri: str


class AppPages:
    """The pages of the tools of one server."""

    __slots__ = ("known",)

    def __init__(self, _: Limits) -> None:
        self.known: set[str] = set()

    def learn(self, pages: Iterable[str], *, first: bool) -> None:
        """Note that a list of tools was forwarded; *first* means that it is the first page of the list."""
        if first:
            self.known.clear()
        self.known.update(islice((each for each in pages if len(each) <= _LONGEST), _MOST - len(self.known)))


@on("request", "resources/read")
def take_page(state: "State", exchange: Exchange, params: dict[str, Any], _: Report) -> None:
    """Note that the page of a tool is asked for, so that the answer must have it."""
    uri, pages = params.get("uri"), state.known(AppPages)
    if pages is not None and isinstance(uri, str) and uri in pages.known and not leaves_out(state, APPS):
        exchange.beyond = PageRead(uri)


@on("error", "resources/read")
def check_found(state: "State", exchange: Exchange, error: dict[str, Any], report: Report) -> None:
    """Report a server that does not find the page of one of its tools."""
    read, pages, code = exchange.beyond, state.known(AppPages), error["code"]
    is_listed = isinstance(read, PageRead) and pages is not None and read.uri in pages.known
    # The codes for a resource that does not exist, of older revisions and of newer ones.
    if is_listed and code in {NO_RESOURCE, INVALID_PARAMS}:
        expected = "the page that tools/list names for a tool"
        report.add("apps/not-found", "/error/code", expected=expected, found=str(code))


@on("result", "tools/call")
def check_content(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report a result that only the page of its tool can show."""
    has_page = exchange.contract is not None and exchange.contract.has_page
    # It may ask for input first, or be a task.
    is_whole = not exchange.as_task and result.get("resultType", "complete") == "complete"
    content = result.get("content")
    if not has_page or not is_whole or leaves_out(state, APPS):
        return
    if isinstance(content, list) and result.get("isError") is not True and not any(map(_is_meaningful, content)):
        found = "only empty text" if content else "an empty array"
        report.add("apps/content", "/result/content", expected="content for the model", found=found)


def _is_meaningful(block: Any) -> bool:
    """Return whether a block of content shows something; only text can be empty."""
    shown = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return not isinstance(shown, str) or bool(shown.strip())


def _with_meta(tools: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the *tools* of a list that have a `_meta`, each with its number."""
    return [(number, each) for number, each in enumerate(items(tools)) if isinstance(each, dict) and "_meta" in each]


@on("entries", "tools/list")
def check_tools(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report what is wrong with what a list of tools has about pages."""
    tools = _with_meta(result.get("tools"))
    if tools and not leaves_out(state, APPS):
        some = report.apart(report.most)
        for number, tool in tools:
            if not some.is_full:
                _check_tool(tool["_meta"], f"/result/tools/{number}/_meta", exchange.entry.rules, some)
        report.join(some)


@on("answered", "tools/list")
def learn_pages(state: "State", exchange: Exchange, result: dict[str, Any], _: Report) -> None:
    """Keep the pages that a list of tools names."""
    uris = [page_of(tool) for _, tool in _with_meta(result.get("tools"))]
    pages = [uri for uri in uris if uri is not None]
    if (pages or state.known(AppPages) is not None) and not leaves_out(state, APPS):
        state.shared(AppPages).learn(pages, first=exchange.detail is None)


@on("noted", "notifications/tools/list_changed")
def forget_pages(state: "State", note: Note) -> None:
    """Forget all pages: the server has reported that its tools have changed."""
    pages = state.known(AppPages)
    if pages is not None and note.sender.party is Party.SERVER:
        pages.known.clear()


@on("entries", "resources/list")
def check_resources(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report what is wrong with pages in a list of resources."""
    _check_pages(state, exchange, result.get("resources"), "apps/listed-mime-type", "/result/resources", report)


@on("result", "resources/read")
def check_contents(state: "State", exchange: Exchange, result: dict[str, Any], report: Report) -> None:
    """Report what is wrong with pages in the contents of a resource."""
    _check_pages(state, exchange, result.get("contents"), "apps/mime-type", "/result/contents", report)


def _check_pages(state: "State", exchange: Exchange, listed: Any, rule: str, at: str, report: Report) -> None:
    # By their URI.
    pages = [
        (number, each)
        for number, each in enumerate(items(listed))
        if isinstance(each, dict) and text(each.get("uri")).startswith(PAGE_SCHEME)
    ]
    if not pages or leaves_out(state, APPS):
        return
    some = report.apart(report.most)
    for number, page in pages:
        if some.is_full:
            break
        kind = page.get("mimeType")
        if kind != _MIME_TYPE:
            found = "nothing" if kind is None else shown(kind)
            some.add(rule, f"{at}/{number}/mimeType", expected=f'"{_MIME_TYPE}"', found=found)
        _check_page(page.get("_meta"), f"{at}/{number}/_meta", exchange.entry.rules, some)
    report.join(some)


def _check_tool(meta: Any, at: str, rules: RevisionRules, report: Report) -> None:
    ui, flat = obj(meta).get("ui"), obj(meta).get(FLAT_KEY)
    if "ui" in obj(meta):
        rules.extension_definition(APPS, "UiToolMeta").check("apps/meta", ui, f"{at}/ui", report)
    nested, flat_at = obj(ui).get("resourceUri"), f"{at}/{escaped(FLAT_KEY)}"
    for where, uri in ((f"{at}/ui/resourceUri", nested), (flat_at, flat)):
        if isinstance(uri, str) and not uri.startswith(PAGE_SCHEME):
            expected = f"a URI that begins with {PAGE_SCHEME}"
            report.add("apps/resource-uri", where, expected=expected, found=shown(uri))
    # The official SDK sends both, so that older clients find the page.
    if FLAT_KEY in obj(meta) and flat != nested:
        expected, found = "the page in _meta.ui.resourceUri", f"the deprecated key {FLAT_KEY}"
        if nested is not None:
            expected, found = shown(nested), shown(flat)
        report.add("apps/flat-key", flat_at, expected=expected, found=found)


def _check_page(meta: Any, at: str, rules: RevisionRules, report: Report) -> None:
    if "ui" not in obj(meta):
        return
    rules.extension_definition(APPS, "UiResourceMeta").check("apps/meta", meta["ui"], f"{at}/ui", report)
    origins_by_use = obj(obj(meta["ui"]).get("csp"))
    for name in _CSP:
        for number, origin in enumerate(items(origins_by_use.get(name))):
            if isinstance(origin, str) and _ADDS_DIRECTIVES.search(origin):
                expected = "an origin without white space, semicolons, commas and quotes"
                report.add("apps/csp", f"{at}/ui/csp/{name}/{number}", expected=expected, found=shown(origin))
