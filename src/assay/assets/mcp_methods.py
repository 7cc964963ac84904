"""
The asset server's answers to MCP's methods, in every revision. No frames, no ids: params in, a result out.

Params are already judged. A request that cannot be answered raises `MethodError`, with the code of the revision.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any, Final

import orjson

from assay import __version__
from assay.assets import store_backend
from assay.assets.asset_sources import Catalogue
from assay.assets.asset_tools import EVERYTHING, TOOLS, VALID, Tool
from assay.assets.enveloper import REQUEST_IDS, Enveloper, Written
from assay.assets.mcp_content import TEMPLATES, Content, listed_prompts
from assay.assets.response_envelope import ResponseEnvelope, Tiers, ToolError
from assay.base.errors import CanonicalError
from assay.base.json_values import written
from assay.base.limits import TIERS
from assay.base.verdict import Violation
from assay.engine.compiled import compile_schema
from assay.spec.revisions import LATEST_HANDSHAKE, REVISIONS, features_of, handshake

PAGE: Final = 100
"""Entries of a list in one page: 100 resources are about 15 KB."""

FRESH_MS: Final = 3_600_000
"""Milliseconds that a client may cache a result (2026-07-28): files are read only at the start, so an hour is safe."""

INSTRUCTIONS: Final = (
    "Schemas, examples and validation of assets. Begin with list_schemas; read a schema with get_schema, a worked "
    "example with get_example; check what you write with validate_asset before you store it with populate_backend."
)

_CACHED: Final = frozenset(
    {
        *("server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read"),
        "prompts/list",
    }
)
"""The methods whose results clients may cache."""

_LASTING: Final = frozenset({"list_schemas", "get_schema", "list_examples"})
"""The tools whose results depend on one name only, and never change."""


Params = Mapping[str, Any]
Result = dict[str, Any]


def _written(result: Result) -> Written:
    text = written("the result", result)
    return result, text, orjson.dumps(text.decode())[1:-1]


_VALID: Final = _written(dict(VALID))


@cache
def _promised(name: str) -> Callable[[Any], bool]:
    """Return the validator of the output schema of the tool *name*."""
    return compile_schema(TOOLS[name].output).is_valid


class MethodError(Exception):
    """A valid request that cannot be answered; *code* is a canonical error."""

    def __init__(self, code: str, message: str | None = None, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.data = dict(data) if data else None

    def error(self) -> dict[str, Any]:
        """Code and message for JSON-RPC."""
        error: dict[str, Any] = CanonicalError.to_jsonrpc_error(self.code)
        return {**error, "message": self.message} if self.message else error


class Methods:
    """The methods of the asset server."""

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        tiers: Tiers | None = None,
        tier: str = "community",
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._catalogue = catalogue
        self._content = Content(catalogue)
        self._tiers = tiers or Tiers({})
        self.tier = tier
        """The default tier."""
        self._envelopers = {
            name: Enveloper(name, __version__, parameters=tuple(tool.input["properties"]), clock=clock)
            for name, tool in TOOLS.items()
        }
        self._free = frozenset(name for name in TOOLS if self._tiers.allows(name, TIERS[0]))
        self._names = {EVERYTHING, *(one.name for one in catalogue.schemas)}
        self._names.update(one.component for one in catalogue.examples)
        self._kept: dict[tuple[str, str], Written] = {}
        """Results by tool and name. Only names in the catalogue are kept, so their number is bounded."""
        self._table: dict[str, Callable[[Params, str], Result]] = {
            "initialize": self._initialize,
            "ping": lambda _, __: {},
            "server/discover": self._discover,
            "tools/list": lambda params, revision: _page("tools", _tools(revision), params),
            "resources/list": lambda params, _: _page("resources", self._content.resources, params),
            "resources/templates/list": lambda params, _: _page("resourceTemplates", TEMPLATES, params),
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
        }

    def answer(
        self, method: str, params: Params, revision: str, tier: str | None = None, request_id: str | None = None
    ) -> bytes:
        """Return the result of *method* for a client in *tier*, as JSON text. Raises `MethodError`."""
        if method == "tools/call":
            return self._call_tool(params, revision, tier or self.tier, request_id)
        known = self._table.get(method)
        if known is None:
            raise MethodError("METHOD_NOT_FOUND", None, {"method": method[:100]})
        result = known(params, revision)
        if features_of(revision).result_types:
            result["resultType"] = "complete"
        if method in _CACHED and not handshake(revision):
            result |= {"ttlMs": FRESH_MS, "cacheScope": "public"}
        return orjson.dumps(result)

    def bare(self, name: str, arguments: Params, tier: str | None = None) -> bytes:
        """Return the result of the tool *name* without an envelope, as JSON text (specs/001)."""
        tool = TOOLS.get(name)
        if tool is None:
            return orjson.dumps(store_backend.unsupported("tool not implemented"))
        if name not in self._free and not self._tiers.allows(name, tier or self.tier):
            return orjson.dumps(store_backend.unsupported(f"{name} needs the {self._tiers.needed(name)} tier"))
        return self._result(tool, arguments)[1]

    def refused(
        self,
        name: str,
        params: Params,
        wrong: Sequence[Violation],
        revision: str,
        tier: str,
        request_id: str | None = None,
    ) -> bytes:
        """Return the result of a call with invalid arguments: a failure in an envelope, as JSON text."""
        # Without the found values: an error must not contain input of the caller (specs/004).
        known = TOOLS[name].input["properties"]
        details = [
            {"at": _ours(each.at, known), "expected": each.expected, "rule": each.rule, "hint": each.hint}
            for each in wrong
        ]
        error = ToolError("The arguments break the tool's inputSchema.", "invalid_argument", {"violations": details})
        made = self._envelopers[name].write_refusal(
            error, tier=tier, request_id=_correlation(params.get("_meta")) or request_id
        )
        return _tool_result(*made, revision)

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _call_tool(self, params: Params, revision: str, tier: str, request_id: str | None) -> bytes:
        name = params["name"]
        tool = TOOLS.get(name)
        if tool is None:
            raise MethodError("UNKNOWN_TOOL", f"Unknown tool: {name[:100]}")
        arguments = params.get("arguments", {})
        made = self._envelopers[name].write(
            lambda: self._run(tool, arguments, tier),
            tier=tier,
            request_id=(_correlation(params["_meta"]) if "_meta" in params else None) or request_id,
            arguments=arguments,
        )
        return _tool_result(*made, revision)

    def _run(self, tool: Tool, arguments: Params, tier: str) -> Written:
        if tool.name not in self._free:
            self._tiers.check(tool.name, tool.name, tier)
        return self._result(tool, arguments)

    def _result(self, tool: Tool, arguments: Params) -> Written:
        """
        Return the result for *arguments*, which must match the tool's input schema.

        Raises `AssertionError` for a result that breaks the tool's output schema, which is a bug of ours.
        """
        key = None
        if tool.name in _LASTING:
            name = next(iter(arguments.values()), EVERYTHING)
            key = (tool.name, name) if name in self._names else None
            known = self._kept.get(key) if key is not None else None
            if known is not None:
                return known
        given = tool.function(self._catalogue, **arguments)
        if given == VALID:
            return _VALID
        if not _promised(tool.name)(given):
            raise AssertionError(f"{tool.name} breaks its output schema")
        made = _written(given)
        if key is not None:
            self._kept[key] = made
        return made

    # ── other methods ────────────────────────────────────────────────────────────────────────────────────────────────

    def _initialize(self, params: Params, _: str) -> Result:
        asked = params["protocolVersion"]
        known = asked in REVISIONS and handshake(asked)
        return {
            "protocolVersion": asked if known else LATEST_HANDSHAKE,
            "capabilities": capabilities(),
            "serverInfo": _information(),
            "instructions": INSTRUCTIONS,
        }

    def _discover(self, _: Params, __: str) -> Result:
        return {
            "supportedVersions": list(REVISIONS),
            "capabilities": capabilities(),
            "instructions": INSTRUCTIONS,
            "_meta": {"io.modelcontextprotocol/serverInfo": _information()},
        }

    def _read_resource(self, params: Params, revision: str) -> Result:
        uri = params["uri"]
        found = self._content.read(uri)
        if found is None:
            code = "RESOURCE_NOT_FOUND" if handshake(revision) else "INVALID_PARAMS"
            raise MethodError(code, "Resource not found", {"uri": uri[:1000]})
        return {"contents": [found]}

    def _list_prompts(self, params: Params, revision: str) -> Result:
        return _page("prompts", listed_prompts(features_of(revision).titles), params)

    def _get_prompt(self, params: Params, _: str) -> Result:
        filled = self._content.filled(params["name"], params.get("arguments", {}))
        if isinstance(filled, str):
            raise MethodError("INVALID_PARAMS", filled, {"name": params["name"][:100]})
        return filled

    def _complete(self, params: Params, _: str) -> Result:
        reference, argument = params["ref"], params["argument"]
        what, member = ("template", "uri") if reference["type"] == "ref/resource" else ("prompt", "name")
        named = reference[member]
        values = self._content.completions(reference["type"], named, argument["name"], argument["value"])
        if values is None:
            raise MethodError("INVALID_PARAMS", f"No such {what} or argument", {what: named[:1000]})
        return {"completion": {"values": values[:100], "total": len(values), "hasMore": len(values) > 100}}


def capabilities() -> Result:
    """Return the capabilities: nothing changes while the server runs, so there are no subscriptions."""
    return {
        "tools": {"listChanged": False},
        "resources": {"subscribe": False, "listChanged": False},
        "prompts": {"listChanged": False},
        "completions": {},
    }


def _information() -> Result:
    """Return the server's name and version."""
    return {"name": "assay", "title": "Assay asset server", "version": __version__}


@cache
def _tools(revision: str) -> list[Result]:
    """Return the tools with the members that *revision* has, in the order of the specification."""
    features = features_of(revision)
    listed = []
    for tool in TOOLS.values():
        shown: Result = {"name": tool.name}
        if features.titles:
            shown["title"] = tool.title
        shown |= {"description": tool.description, "inputSchema": tool.input}
        if features.output_schemas:
            shown["outputSchema"] = ResponseEnvelope.json_schema(tool.output)
        if features.annotations:
            shown["annotations"] = {"title": tool.title, **tool.annotations}
        listed.append(shown)
    return listed


def _tool_result(envelope: bytes, escaped: bytes, good: bool, revision: str) -> bytes:
    """Return the envelope as text, and as structured content if the revision has it."""
    features = features_of(revision)
    structured = b',"structuredContent":%b' % envelope if features.output_schemas else b""
    ending = b',"isError":false' if good else b',"isError":true'
    if features.result_types:
        ending += b',"resultType":"complete"'
    return b'{"content":[{"type":"text","text":"%b"}]%b%b}' % (escaped, structured, ending)


def _ours(at: str, known: Collection[str]) -> str:
    """Return the part of a pointer into arguments that has only our names: any other name comes from the caller."""
    head = at.removeprefix("/params/arguments/").partition("/")[0]
    return at if not at.startswith("/params/arguments/") or head in known else "/params/arguments"


_CORRELATION: Final = frozenset(REQUEST_IDS)


def _correlation(meta: Any) -> str | None:
    """Return the caller's request id in `_meta`, if it is safe for a log line."""
    if not isinstance(meta, dict) or _CORRELATION.isdisjoint(meta):
        return None
    for name in REQUEST_IDS:
        given = meta.get(name)
        if isinstance(given, str) and 0 < len(given) <= 200 and given.isprintable():
            return given
    return None


def _page(member: str, entries: Sequence[Result], params: Params) -> Result:
    """Return one page of *entries*; the cursor is the start of the next one."""
    cursor = params.get("cursor", "0")
    begin = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 10 else -1
    if not 0 <= begin <= len(entries):
        raise MethodError("INVALID_PARAMS", "Invalid cursor", {"cursor": cursor[:100]})
    result: Result = {member: list(entries[begin : begin + PAGE])}
    if begin + PAGE < len(entries):
        result["nextCursor"] = str(begin + PAGE)
    return result
