"""
What a server's tools promise, learned from its lists. No I/O, no clock.

A schema comes from outside: it is admitted before it is compiled, and what is not admitted is reported, never judged
by.
"""

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from assay.engine.admission import Refusal, compile_untrusted
from assay.engine.compiled import Compiled
from assay.rules import violation
from assay.verdict import Violation


class Contract:
    """A tool's name and its two schemas, ready to judge; None where there is none, or none that can be used."""

    __slots__ = ("input", "name", "output", "valid_input")

    def __init__(self, name: str, arguments: Compiled | None, output: Compiled | None) -> None:
        self.name = name
        self.input = arguments
        self.output = output
        self.valid_input: Callable[[Any], bool] = _anything if arguments is None else arguments.is_valid
        """The engine's own method, so that judging a call takes one step."""


def _anything(_: Any) -> bool:
    return True


class Tools:
    """
    The tools a server has listed, page by page.

    A page is known as soon as it is heard. When the last page is in, what this listing did not name is forgotten.
    """

    __slots__ = ("_limit", "_listed", "_overflowing", "complete", "known")

    def __init__(self, limit: int) -> None:
        self.known: dict[str, Contract] = {}
        """Contracts by tool; always the same dict."""
        self.complete = False
        """Whether all pages have been heard since the list last changed."""
        self._limit = limit
        self._listed: set[str] = set()
        self._overflowing = False

    def learn(self, page: list[Any], *, first: bool, last: bool, outputs: bool, revision: str) -> Iterator[Violation]:
        """
        Takes in one page of a list, and yields what is wrong with the tools on it.

        *outputs* says whether the revision knows output schemas.
        """
        if first:
            self._listed = set()
            self._overflowing = False
        for index, tool in enumerate(page):
            # What is no tool at all breaks the schema of the result; here it is just not learned.
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                yield from self._learn_one(tool, f"/result/tools/{index}", outputs, revision)
        if last:
            for name in self.known.keys() - self._listed:
                del self.known[name]
        self.complete = last and not self._overflowing

    def _learn_one(self, tool: dict[str, Any], at: str, outputs: bool, revision: str) -> Iterator[Violation]:
        name = tool["name"]
        if name in self._listed:
            yield violation(
                "contract/duplicate-tool",
                f"{at}/name",
                expected="a name of its own",
                found=f"{orjson.dumps(name[:60]).decode()} again",
                revision=revision,
            )
            return
        if len(self._listed) >= self._limit:
            self._overflowing = True
            return
        self._listed.add(name)
        schemas: list[Compiled | None] = []
        for member in ("inputSchema", "outputSchema"):
            usable = compiled(tool[member]) if member in tool and (outputs or member == "inputSchema") else None
            if isinstance(usable, Refusal):
                yield _refused(usable, f"{at}/{member}", revision)
                usable = None
            schemas.append(usable)
        self.known[name] = Contract(name, schemas[0], schemas[1])

    def changed(self) -> None:
        """The server says that its list has changed: what is known stays, until it is listed again."""
        self.complete = False


def _refused(refusal: Refusal, at: str, revision: str) -> Violation:
    return violation(refusal.rule, at + refusal.at, expected=refusal.expected, found=refusal.found, revision=revision)


# Compiled schemas by their text: a server lists the same tools to every client, and again after every change. Bounded
# by the text they were made from, which is what an upstream controls.
_CACHE: dict[bytes, Compiled | Refusal] = {}
_CACHE_BYTES = 16 << 20
_cached_bytes = 0


def compiled(schema: Any) -> Compiled | Refusal:
    """*schema*, admitted and compiled, or why not. The same object for the same text."""
    global _cached_bytes  # noqa: PLW0603 - one cache, one account of what it holds
    try:
        text = orjson.dumps(schema)
    except orjson.JSONEncodeError:
        # From Python only, an integer beyond 64 bits for one: what was read from a frame can be written again.
        return compile_untrusted(schema)
    known = _CACHE.get(text)
    if known is None:
        known = compile_untrusted(schema)
        if _cached_bytes + len(text) > _CACHE_BYTES:
            _CACHE.clear()
            _cached_bytes = 0
        _CACHE[text] = known
        _cached_bytes += len(text)
    return known
