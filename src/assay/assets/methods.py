"""
The asset server's answers to MCP's methods, in every revision. No frames, no ids: params in, a result out.

Params have been judged already. What cannot be answered is a `MethodError`, with the code that the revision wants.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from assay import __version__
from assay.assets.resources import Resources
from assay.assets.sources import Catalogue
from assay.assets.tools import TOOLS, Tool
from assay.response import Enveloper, ResponseEnvelope, Tiers
from assay.spec.revisions import REVISIONS, handshake

PAGE: Final = 100
"""Entries of a list in one answer: a page of 100 resources is about 15 KB."""

FRESH_MS: Final = 3_600_000
"""How long a client may keep an answer (2026-07-28): files are read at start only, so an hour is no risk."""

INSTRUCTIONS: Final = (
    "Schemas, examples and validation of assets. Begin with list_schemas; read a schema with get_schema, a worked "
    "example with get_example; check what you write with validate_asset before you store it with populate_backend."
)

_INVALID_PARAMS: Final = -32602
_RESOURCE_NOT_FOUND: Final = -32002

Params = Mapping[str, Any]
Result = dict[str, Any]


class MethodError(Exception):
    """A request that is right by the schema, and cannot be answered."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Methods:
    """What the asset server knows how to answer."""

    def __init__(self, catalogue: Catalogue, *, tiers: Tiers | None = None, tier: str = "community") -> None:
        self._catalogue = catalogue
        self._resources = Resources(catalogue)
        self._tiers = tiers or Tiers({})
        self._tier = tier
        self._envelopers = {
            name: Enveloper(name, __version__, parameters=tuple(tool.input["properties"]))
            for name, tool in TOOLS.items()
        }
        self._tools: dict[str, list[Result]] = {}
        self._table: dict[str, Callable[[Params, str], Result]] = {
            "initialize": self._initialize,
            "ping": lambda _, __: {},
            "server/discover": self._discover,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "completion/complete": self._complete,
        }

    def answer(self, method: str, params: Params, revision: str) -> Result:
        """The result of *method*; raises `MethodError`."""
        known = self._table.get(method)
        if known is None:
            raise MethodError(-32601, "Method not found", {"method": method[:100]})
        return known(params, revision)

    def bare(self, tool: Tool, arguments: Params) -> Result:
        """What *tool* gives, without an envelope: the answer of specs/001."""
        return tool.call(self._catalogue, arguments)

    def tools(self, revision: str) -> list[Result]:
        """The tools as *revision* lists them, in the order of the specification."""
        if revision not in self._tools:
            self._tools[revision] = [_listed(tool, revision) for tool in TOOLS.values()]
        return self._tools[revision]

    # ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _initialize(self, params: Params, _: str) -> Result:
        asked = params["protocolVersion"]
        known = asked in REVISIONS and handshake(asked)
        return {
            "protocolVersion": asked if known else next(each for each in reversed(REVISIONS) if handshake(each)),
            "capabilities": capabilities(),
            "serverInfo": information(),
            "instructions": INSTRUCTIONS,
        }

    def _discover(self, _: Params, revision: str) -> Result:
        return {
            "supportedVersions": list(REVISIONS),
            "capabilities": capabilities(),
            "instructions": INSTRUCTIONS,
            "_meta": {"io.modelcontextprotocol/serverInfo": information()},
            **_kept(revision),
        }

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _list_tools(self, params: Params, revision: str) -> Result:
        return _page("tools", self.tools(revision), params, revision)

    def _call_tool(self, params: Params, revision: str) -> Result:
        name = params["name"]
        tool = TOOLS.get(name)
        if tool is None:
            raise MethodError(_INVALID_PARAMS, f"Unknown tool: {name[:100]}")
        arguments = params.get("arguments", {})
        envelope = self._envelopers[name].run(
            lambda: self._run(tool, arguments),
            tier=self._tier,
            request_id=_correlation(params),
            arguments=arguments,
        )
        return _tool_result(envelope, revision)

    def _run(self, tool: Tool, arguments: Params) -> Result:
        self._tiers.check(tool.name, tool.name, self._tier)
        return tool.call(self._catalogue, arguments)

    # ── resources ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _list_resources(self, params: Params, revision: str) -> Result:
        return _page("resources", self._resources.listed(), params, revision)

    def _list_templates(self, params: Params, revision: str) -> Result:
        return _page("resourceTemplates", self._resources.templates(), params, revision)

    def _read_resource(self, params: Params, revision: str) -> Result:
        uri = params["uri"]
        found = self._resources.read(uri)
        if found is None:
            code = _RESOURCE_NOT_FOUND if handshake(revision) else _INVALID_PARAMS
            raise MethodError(code, "Resource not found", {"uri": uri[:1000]})
        return {"contents": [found], **_kept(revision)}

    def _complete(self, params: Params, revision: str) -> Result:
        reference, argument = params["ref"], params["argument"]
        if reference["type"] != "ref/resource":
            raise MethodError(_INVALID_PARAMS, "There are no prompts to complete")
        values = self._resources.completions(reference["uri"], argument["name"], argument["value"])
        if values is None:
            raise MethodError(_INVALID_PARAMS, "No such template or argument", {"uri": reference["uri"][:1000]})
        completion = {"values": values[:100], "total": len(values), "hasMore": len(values) > 100}
        return {"completion": completion, **_typed(revision)}


def capabilities() -> Result:
    """What the server declares: nothing changes while it runs, so nothing is subscribed to."""
    return {"tools": {"listChanged": False}, "resources": {"subscribe": False, "listChanged": False}, "completions": {}}


def information() -> Result:
    """Who answers."""
    return {"name": "assay", "title": "Assay asset server", "version": __version__}


def _listed(tool: Tool, revision: str) -> Result:
    """A tool with the members that *revision* has."""
    shown: Result = {"name": tool.name}
    if revision >= "2025-06-18":
        shown["title"] = tool.title
    shown |= {"description": tool.description, "inputSchema": tool.input}
    if revision >= "2025-06-18":
        shown["outputSchema"] = ResponseEnvelope.json_schema(tool.output)
    if revision >= "2025-03-26":
        shown["annotations"] = {"title": tool.title, **tool.annotations}
    return shown


def _tool_result(envelope: ResponseEnvelope, revision: str) -> Result:
    """The envelope as text, for every client, and as structured content where the revision has it."""
    text = envelope.to_json()
    result: Result = {"content": [{"type": "text", "text": text.decode()}], "isError": envelope.error is not None}
    if revision >= "2025-06-18":
        result["structuredContent"] = orjson.Fragment(text)
    return {**result, **_typed(revision)}


def _correlation(params: Params) -> str | None:
    """The request id that the caller gives in `_meta`, if it does."""
    meta = params.get("_meta") or {}
    given = meta.get("request_id", meta.get("requestId"))
    return given if isinstance(given, str) and 0 < len(given) <= 200 else None


def _page(member: str, entries: Sequence[Result], params: Params, revision: str) -> Result:
    """One page of *entries*; the cursor is where the next one begins."""
    cursor = params.get("cursor", "0")
    begin = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 10 else -1
    if begin < 0 or begin > len(entries):
        raise MethodError(_INVALID_PARAMS, "Invalid cursor", {"cursor": cursor[:100]})
    result: Result = {member: list(entries[begin : begin + PAGE]), **_kept(revision)}
    if begin + PAGE < len(entries):
        result["nextCursor"] = str(begin + PAGE)
    return result


def _typed(revision: str) -> Result:
    """What a result says of itself from 2026-07-28 on."""
    return {} if handshake(revision) else {"resultType": "complete"}


def _kept(revision: str) -> Result:
    """The same, with how long it may be kept, and by whom."""
    return {} if handshake(revision) else {"resultType": "complete", "ttlMs": FRESH_MS, "cacheScope": "public"}
