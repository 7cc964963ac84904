"""
A configuration as it can be shown: without the values of variables and headers, and what else looks like a secret.

Only for people to look at: what is hidden is still JSON, line by line where it was, but no longer what it says.
"""

import re
from collections.abc import Callable, Iterator
from difflib import unified_diff
from functools import partial
from typing import Final

from assay.base.mask import MASK
from assay.cli.clients.dialect import JSON, Dialect
from assay.cli.clients.jsonc import Array, Edit, Node, Object, Scalar, edited, lines, plain
from assay.core.masked_commands import Masking
from assay.core.masking import looks_random, masked_secret, masked_text, redactor

_HIDDEN: Final = frozenset({"env", "headers", "http_headers"})
"""Members of an entry whose values are nobody's business."""

_VARIABLES: Final = frozenset({"bearer_token_env_var", "env_http_headers"})
"""Members of an entry of Codex whose values are names of variables, in which the secrets are."""

_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
"""The name of a variable as people write it. A token that was put in its place by mistake has other letters."""

_HEADER: Final = re.compile(r"([^:]+: )(?:(?:Bearer|Basic|Token) +)?env:(.*)", re.IGNORECASE | re.DOTALL)
"""A header of the guard with its value in a variable."""

Mask = Callable[[str], str]


def difference(before: str, after: str, name: str, dialect: Dialect = JSON) -> Iterator[str]:
    """How two configurations differ, as lines of a unified diff of the file called *name*, with nothing secret."""
    shown = (_shown(before, dialect), _shown(after, dialect))
    # Last, and of the few lines that are shown: a file of Claude Code has a hundred thousand.
    yield from map(_printable, unified_diff(*shown, fromfile=name, tofile=name, lineterm=""))


def _shown(text: str, dialect: Dialect) -> list[str]:
    return lines(masked(text, dialect).removeprefix("\ufeff"))


def masked(text: str, dialect: Dialect = JSON) -> str:
    """A configuration with what is secret in it hidden."""
    return edited(text, _Masking(text, dialect).edits())


class _Masking:
    """Goes through a document, and says what to hide."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._document = dialect.document(text)
        self._redactor = redactor()
        self._hidden: list[Node] = []
        root = self._document.root
        sections = (value for _, value in dialect.sections(root)) if isinstance(root, Object) else ()
        self._sections = {id(value) for value in sections}

    def edits(self) -> Iterator[Edit]:
        """What hides it all."""
        yield from self._any(self._document.root, secret=False)
        # Last: by now it is known where they are hidden in any case.
        for start, end in self._document.comments:
            yield from self._comment(start, end)

    def _entry(self, entry: Node) -> Iterator[Edit]:
        for key, value in entry.members if isinstance(entry, Object) else ():
            if key.value in _VARIABLES:
                yield from self._variables(value)
            elif key.value in _HIDDEN:
                self._hidden.append(value)
                yield from self._any(value, secret=True)
            elif key.value == "args" and isinstance(value, Array):
                yield from self._args(value, entry)
            else:
                yield from self._any(value, secret=self._redactor.is_secret(key.value))

    def _variables(self, value: Node) -> Iterator[Edit]:
        for node in (each.value for each in value.members) if isinstance(value, Object) else (value,):
            if isinstance(node, Scalar) and isinstance(node.value, str):
                yield from self._string(node, _masked_name)
            else:
                yield from self._any(node, secret=True)

    def _args(self, args: Array, entry: Node) -> Iterator[Edit]:
        masking, before = Masking(_program(entry)), ""
        for item in args.items:
            if isinstance(item, Scalar) and isinstance(item.value, str):
                yield from self._string(item, partial(_masked_argument, masking, before))
                before = item.value

    def _any(self, node: Node, *, secret: bool) -> Iterator[Edit]:
        if isinstance(node, Array):
            for item in node.items:
                yield from self._any(item, secret=secret)
        elif isinstance(node, Object) and id(node) in self._sections:
            for _, entry in node.members:
                yield from self._entry(entry)
        elif isinstance(node, Object):
            # VS Code asks for an input; what it suggests is as secret as what is typed.
            password = node.get("password")
            typed_unseen = password is not None and plain(password.value) is True
            for key, value in node.members:
                hidden = self._redactor.is_secret(key.value) or (typed_unseen and key.value == "default")
                yield from self._any(value, secret=secret or hidden)
        elif isinstance(node.value, str):
            yield from self._string(node, masked_secret if secret else masked_text)
        elif secret and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            yield Edit(node.start, node.end, "0")

    def _string(self, node: Scalar, mask: Mask) -> Iterator[Edit]:
        shown = mask(node.value)
        if shown != node.value:
            yield Edit(node.start, node.end, self._dialect.written(shown))

    def _comment(self, start: int, end: int) -> Iterator[Edit]:
        """What is commented out may be an entry with all its secrets: hidden, if it has a quote in it."""
        text = self._text[start:end]
        if self._dialect.hides(text) or any(node.start < start < node.end for node in self._hidden):
            shown = self._dialect.commented(text, MASK)
        else:
            shown = self._redactor.text(text)
        if shown != text:
            yield Edit(start, end, shown)


def _is_name(word: str) -> bool:
    return bool(_VARIABLE.fullmatch(word)) and not looks_random(word) and masked_text(word) == word


def _masked_name(word: str) -> str:
    """*word*, hidden unless it is the name of a variable."""
    return word if _is_name(word) else masked_secret(word)


def _masked_argument(masking: Masking, before: str, word: str) -> str:
    header, shown = _HEADER.fullmatch(word) if before == "--header" else None, masking.masked(word)
    return word if header and _is_name(header[2]) else shown


def _program(entry: Node) -> str:
    """Return the program of an entry; empty if it has none."""
    found = entry.get("command") if isinstance(entry, Object) else None
    program = None if found is None else plain(found.value)
    return program if isinstance(program, str) else ""


def _printable(line: str) -> str:
    """*line* with nothing in it that a terminal would act upon."""
    return "".join(each if each.isprintable() or each == "\t" else repr(each)[1:-1] for each in line)
