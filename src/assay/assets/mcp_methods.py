"""
The asset server's answers to MCP's methods, in every revision. No frames, no ids: params in, a result out.

Params are already judged. A request that cannot be answered raises `MethodError`, with the code of the revision.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cache, lru_cache
from time import perf_counter
from typing import Any, Final

import orjson

from assay import __version__
from assay.assets import store_backend
from assay.assets.asset_sources import Catalogue
from assay.assets.asset_tools import TOOLS, VALID
from assay.assets.enveloper import REQUEST_IDS, Enveloper
from assay.assets.json_text import written
from assay.assets.mcp_content import Content, Method, MethodError, Params, Result, page
from assay.assets.response_envelope import ResponseEnvelope, Tiers, ToolError
from assay.model.verdict import Violation
from assay.schema.compiled import compile_schema
from assay.spec.revisions import LATEST_HANDSHAKE, REVISIONS, features_of, handshake

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

_KEPT: Final = 256
"""Results of these tools to keep, those of the latest names."""


@cache
def _promised(name: str) -> Callable[[Any], bool]:
    """Return the validator of the output schema of the tool *name*."""
    return compile_schema(TOOLS[name].output).is_valid


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
        self._tiers = tiers or Tiers({})
        self.tier = tier
        """The default tier."""
        self._envelopers = {
            name: Enveloper(name, __version__, parameters=tool.input["properties"], pure=True, clock=clock)
            for name, tool in TOOLS.items()
        }
        self._lasting = lru_cache(_KEPT)(self._made)
        self._table: dict[str, Method] = {
            "initialize": self._initialize,
            "ping": lambda _, __: {},
            "server/discover": self._discover,
            "tools/list": lambda params, revision: page("tools", _tools(revision), params),
            **Content(catalogue).methods,
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
        if name not in TOOLS:
            return orjson.dumps(store_backend.unsupported("tool not implemented"))
        if not self._tiers.allows(name, tier or self.tier):
            return orjson.dumps(store_backend.unsupported(f"{name} needs the {self._tiers.needed(name)} tier"))
        return written("the result", self._result(name, arguments))

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
        known_as = _correlation(params.get("_meta")) or request_id
        return _tool_result(self._envelopers[name].refused(error, tier=tier, request_id=known_as), revision)

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _call_tool(self, params: Params, revision: str, tier: str, request_id: str | None) -> bytes:
        name = params["name"]
        if name not in TOOLS:
            raise MethodError("UNKNOWN_TOOL", f"Unknown tool: {name[:100]}")
        arguments = params.get("arguments", {})

        def run() -> Result:
            self._tiers.check(name, name, tier)
            return self._result(name, arguments)

        known_as = _correlation(params.get("_meta")) or request_id
        made = self._envelopers[name].run(run, tier=tier, request_id=known_as, arguments=arguments)
        return _tool_result(made, revision)

    def _result(self, tool: str, arguments: Params) -> Result:
        """Return the result for *arguments*, which must match the tool's input schema."""
        return self._lasting(tool, **arguments) if tool in _LASTING else self._made(tool, **arguments)

    def _made(self, tool: str, /, **arguments: Any) -> Result:
        """
        Return the result of *tool*.

        Raises `AssertionError` for a result that breaks the tool's output schema, which is a bug of ours.
        """
        given = TOOLS[tool].function(self._catalogue, **arguments)
        if given != VALID and not _promised(tool)(given):
            raise AssertionError(f"{tool} breaks its output schema")
        return given

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


def _tool_result(made: ResponseEnvelope, revision: str) -> bytes:
    """Return the envelope as text, and as structured content if the revision has it."""
    features, text = features_of(revision), made.to_json()
    structured = b',"structuredContent":%b' % text if features.output_schemas else b""
    ending = b',"isError":false' if made.error is None else b',"isError":true'
    if features.result_types:
        ending += b',"resultType":"complete"'
    return b'{"content":[{"type":"text","text":%b}]%b%b}' % (orjson.dumps(text.decode()), structured, ending)


def _ours(at: str, known: Collection[str]) -> str:
    """Return the part of a pointer into arguments that has only our names: any other name comes from the caller."""
    head = at.removeprefix("/params/arguments/").partition("/")[0]
    return at if not at.startswith("/params/arguments/") or head in known else "/params/arguments"


def _correlation(meta: Any) -> str | None:
    """Return the caller's request id in `_meta`, if it is safe for a log line."""
    for name in REQUEST_IDS if isinstance(meta, dict) else ():
        given = meta.get(name)
        if isinstance(given, str) and 0 < len(given) <= 200 and given.isprintable():
            return given
    return None
