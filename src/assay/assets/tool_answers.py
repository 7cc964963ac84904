"""
The results of the tools as JSON text, checked against their output schemas. No I/O except in `populate_backend`.

The catalogue is immutable, so results that depend only on it are serialized once.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from assay.assets.asset_sources import Catalogue
from assay.assets.asset_tools import EVERYTHING, TOOLS, VALID, Tool
from assay.assets.response.enveloper import Text
from assay.engine.compiled import compile_schema


@cache
def _promised(name: str) -> Callable[[Any], bool]:
    """Return the validator of the output schema of the tool *name*."""
    return compile_schema(TOOLS[name].output).is_valid


_VALID: Final = Text.of(dict(VALID))


class Answers:
    """The results of the tools for one catalogue."""

    __slots__ = ("_catalogue", "_kept", "_lasting")

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        names = {one.name for one in catalogue.schemas}
        # Only results for names in the catalogue are kept, so their number is bounded.
        self._lasting: Mapping[str, tuple[str, frozenset[str]]] = {
            "get_schema": ("name", frozenset(names)),
            "list_examples": ("component", frozenset({EVERYTHING, *(one.component for one in catalogue.examples)})),
        }
        self._kept: dict[tuple[str, str], Text] = {}

    def to(self, tool: Tool, arguments: Mapping[str, Any]) -> Text:
        """
        Return the result for *arguments*, which must match the tool's input schema.

        Raises `AssertionError` for a result that breaks the tool's output schema, which is a bug of ours.
        """
        key = self._key(tool.name, arguments)
        if key is None:
            return self._made(tool, arguments)
        known = self._kept.get(key)
        if known is None:
            known = self._kept[key] = self._made(tool, arguments)
        return known

    def _key(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str] | None:
        """Return the key of a kept result; None if it is not kept."""
        if not arguments:
            return (name, EVERYTHING)
        lasting = self._lasting.get(name)
        if lasting is None:
            return None
        value: str = arguments[lasting[0]]
        return (name, value) if value in lasting[1] else None

    def _made(self, tool: Tool, arguments: Mapping[str, Any]) -> Text:
        given = tool.function(self._catalogue, **arguments)
        if given == VALID:
            return _VALID
        if not _promised(tool.name)(given):
            raise AssertionError(f"{tool.name} breaks its output schema")
        return Text.of(given)
