"""
The pages that a server names for its tools. No I/O, no clock.

A page is remembered until the server reports that its tools have changed.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from assay.base.verdict import Exchange, Violation
from assay.core.extensions import app_rules
from assay.core.history.answer_rules import INVALID_PARAMS

_MOST: Final = 1000
"""Pages that are remembered. The largest known server has fewer than 300 tools, and tools share pages."""

_LONGEST: Final = 2048
"""Characters of the URI of a page that is remembered."""

_NOT_FOUND: Final = frozenset({-32002, INVALID_PARAMS})
"""The codes for a resource that does not exist, of older revisions and of newer ones."""


class PageRead(NamedTuple):
    """A request for the page of a tool."""

    uri: str


class AppPages:
    """The pages of the tools of one server."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: set[str] = set()

    def take_read(self, exchange: Exchange, uri: str) -> None:
        """Note that the page of a tool is asked for, so that the answer must have it."""
        if uri in self._known:
            exchange.beyond = PageRead(uri)

    def learn(self, pages: Iterable[str], *, first: bool) -> None:
        """Note that a list of tools was forwarded; *first* means that it is the first page of the list."""
        if first:
            self._known.clear()
        self._known.update(islice((each for each in pages if len(each) <= _LONGEST), _MOST - len(self._known)))

    def changed(self) -> None:
        """Forget all pages: the server has reported that its tools have changed."""
        self._known.clear()

    def check_error(self, exchange: Exchange, code: int) -> list[Violation]:
        """Return the violation of an error to a request for the page of a tool."""
        read = exchange.beyond
        is_lost = isinstance(read, PageRead) and read.uri in self._known and code in _NOT_FOUND
        return [app_rules.lost(code, exchange.revision)] if is_lost else []
