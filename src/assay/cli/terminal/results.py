"""Show the tools and results of a server. Text of peers is made safe for a terminal. No I/O."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from assay.cli.terminal.style import Style
from assay.model.printable import harmless, plain

_MOST_PARAMETERS: Final = 8
"""Maximal parameters in the signature of a tool; a schema can have thousands."""


def tool_lines(tool: Mapping[str, Any], style: Style) -> Iterator[str]:
    """Return the signature of a tool, and below it the first paragraph of its description."""
    yield style.paint(plain(signature(tool)), "bold")
    described = tool.get("description") or tool.get("title")
    if isinstance(described, str) and described.strip():
        first = described.strip().split("\n\n", 1)[0]
        yield from style.wrapped(plain(" ".join(first.split())), 4)


def signature(tool: Mapping[str, Any]) -> str:
    """Return ``search(words: string, limit?: integer)``; optional parameters have a question mark."""
    properties, needed = _parameters(tool)
    # Required parameters first: readers look for them.
    named = sorted(properties.items(), key=lambda item: item[0] not in needed)
    shown = [f"{name}{'' if name in needed else '?'}{_type(each)}" for name, each in named[:_MOST_PARAMETERS]]
    more = [f"… {len(named) - _MOST_PARAMETERS} more"] if len(named) > _MOST_PARAMETERS else []
    return f"{tool.get('name')}({', '.join(shown + more)})"


def example(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments that have a value of the right type for every required parameter."""
    properties, needed = _parameters(tool)
    return {name: _sample(properties.get(name)) for name in needed}


def _parameters(tool: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, None]]:
    """Return the schemas of the parameters of a tool by name, and the names that are required, in their order."""
    schema = tool.get("inputSchema")
    known = schema if isinstance(schema, dict) else {}
    properties, required = known.get("properties"), known.get("required")
    listed = required if isinstance(required, list) else []
    return (
        properties if isinstance(properties, dict) else {},
        dict.fromkeys(each for each in listed if isinstance(each, str)),
    )


def result_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """
    Return the content of a tool's result, block by block, without control characters.

    Structured content is shown as JSON, and text that only repeats it is left out.
    """
    structured = result.get("structuredContent")
    content = result.get("content")
    for block in content if isinstance(content, list) else ():
        if structured is None or not _repeats(block, structured):
            yield harmless(_block(block))
    if structured is not None:
        yield harmless(json.dumps(structured, indent=2, ensure_ascii=False))


def _type(schema: Any) -> str:
    """Return ``: integer``; empty if the schema has no type."""
    found = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(schema, dict) and isinstance(schema.get("enum"), list) and len(schema["enum"]) <= 4:
        return ": " + " | ".join(json.dumps(each, ensure_ascii=False)[:20] for each in schema["enum"])
    if isinstance(found, str):
        return f": {found[:20]}"
    return f": {' | '.join(map(str, found))[:40]}" if isinstance(found, list) else ""


def _sample(schema: Any) -> Any:
    known = schema if isinstance(schema, dict) else {}
    if isinstance(known.get("enum"), list) and known["enum"]:
        return known["enum"][0]
    if "default" in known:
        return known["default"]
    kind = known.get("type")
    first = kind[0] if isinstance(kind, list) and kind else kind
    samples: dict[Any, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}, "null": None}
    return samples.get(first if isinstance(first, str) else None, "…")


def _repeats(block: Any, structured: Any) -> bool:
    """Whether a text block repeats the structured content, as servers do for older clients."""
    if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
        return False
    try:
        return bool(json.loads(block["text"]) == structured)
    except (ValueError, RecursionError):
        return False


def _block(block: Any) -> str:
    if not isinstance(block, dict):
        return json.dumps(block, ensure_ascii=False)
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return str(block["text"])
    if kind in {"image", "audio"}:
        return f"[{kind} {block.get('mimeType')}, {_bytes(block.get('data'))} bytes]"
    if kind == "resource_link":
        return f"[link {block.get('name')} {block.get('uri')}]"
    resource = block.get("resource")
    if kind == "resource" and isinstance(resource, dict):
        if isinstance(resource.get("text"), str):
            return f"[resource {resource.get('uri')}]\n{resource['text']}"
        return f"[resource {resource.get('uri')}, {_bytes(resource.get('blob'))} bytes]"
    return json.dumps(block, ensure_ascii=False)


def _bytes(data: Any) -> str:
    """Return the number of bytes that base64 text decodes to."""
    return f"{len(data) * 3 // 4 - data[-2:].count('='):,}" if isinstance(data, str) else "?"
