"""Pages that show the results of tools, by the extension `io.modelcontextprotocol/ui`. No I/O, no state."""

from collections.abc import Mapping
from typing import Any, Final

PAGE_SCHEME: Final = "ui://"

FLAT_KEY: Final = "ui/resourceUri"
"""The deprecated member of `_meta` for the page."""


def with_meta(tools: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the *tools* of a list that have a `_meta`, each with its number."""
    listed = tools if isinstance(tools, list) else ()
    return [(number, each) for number, each in enumerate(listed) if isinstance(each, dict) and "_meta" in each]


def pages_in(resources: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the *resources* of a list, or the contents of one, that are pages by their URI, each with its number."""
    listed = resources if isinstance(resources, list) else ()
    return [(number, each) for number, each in enumerate(listed) if isinstance(each, dict) and _is_page(each)]


def _is_page(resource: Mapping[str, Any]) -> bool:
    uri = resource.get("uri")
    return isinstance(uri, str) and uri.startswith(PAGE_SCHEME)


def page_of(tool: Mapping[str, Any]) -> str | None:
    """Return the URI of the page of *tool*; None without one."""
    meta = tool.get("_meta")
    if not isinstance(meta, dict):
        return None
    ui = meta.get("ui")
    uri = ui.get("resourceUri") if isinstance(ui, dict) and "resourceUri" in ui else meta.get(FLAT_KEY)
    return uri if isinstance(uri, str) and uri.startswith(PAGE_SCHEME) else None


def has_page_for_model(tool: Mapping[str, Any]) -> bool:
    """Return whether *tool* has a page and is offered to the model, which does not see the page."""
    if page_of(tool) is None:
        return False
    ui = tool["_meta"].get("ui")
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return not isinstance(visibility, list) or "model" in visibility
