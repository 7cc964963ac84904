"""Addresses of the documents that rules come from. No I/O."""

import re
from collections.abc import Callable
from typing import Final

_SPECIFICATION: Final = "https://modelcontextprotocol.io/specification"
_PAGE: Final = re.compile(r"MCP (\d{4}-\d\d-\d\d|\([^)]*\)), ([a-z][a-z/-]*)")


def _page(found: re.Match[str], revision: str | None) -> str | None:
    name = found[1] if found[1][0] != "(" else revision
    return None if name is None else f"{_SPECIFICATION}/{name}/{found[2]}"


_DOCUMENTS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str | None], str | None]], ...]] = (
    (_PAGE, _page),
    (re.compile(r"RFC (\d+)"), lambda found, _: f"https://www.rfc-editor.org/rfc/rfc{found[1]}"),
    (re.compile(r"JSON-RPC 2\.0"), lambda _, __: "https://www.jsonrpc.org/specification"),
    (
        re.compile(r"JSON Schema (\d{4}-\d\d), (core|validation)"),
        lambda found, _: f"https://json-schema.org/draft/{found[1]}/json-schema-{found[2]}",
    ),
)


def source_link(source: str, revision: str | None) -> str | None:
    """Return the address of the first document that *source* names; None if it is not a known one."""
    for pattern, address in _DOCUMENTS:
        found = pattern.search(source)
        if found is not None:
            return address(found, revision)
    return None
