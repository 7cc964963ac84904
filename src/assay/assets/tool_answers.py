"""
What the tools answer, as JSON text, held to what they promise. No I/O but that of `populate_backend`.

The catalogue never changes, so the answers that depend on nothing else are written once.
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
    """Whether a value is what the tool *name* promises."""
    return compile_schema(TOOLS[name].output).is_valid


_VALID: Final = Text.of(dict(VALID))


class Answers:
    """The answers of the tools over one catalogue."""

    __slots__ = ("_catalogue", "_kept", "_lasting")

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        names = {one.name for one in catalogue.schemas}
        # What is asked for by a name that the catalogue has: there are only so many of those.
        self._lasting: Mapping[str, tuple[str, frozenset[str]]] = {
            "get_schema": ("name", frozenset(names)),
            "list_examples": ("component", frozenset({EVERYTHING, *(one.component for one in catalogue.examples)})),
        }
        self._kept: dict[tuple[str, str], Text] = {}

    def to(self, tool: Tool, arguments: Mapping[str, Any]) -> Text:
        """
        The answer to *arguments*, which fit the tool's input schema.

        Raises `AssertionError` for one that breaks the tool's output schema: a mistake of ours, which is not passed on.
        """
        key = self._key(tool.name, arguments)
        if key is None:
            return self._made(tool, arguments)
        known = self._kept.get(key)
        if known is None:
            known = self._kept[key] = self._made(tool, arguments)
        return known

    def _key(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, str] | None:
        """What the answer is kept under; None if it is not."""
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
