"""
Hide secrets in a configuration before it is shown: values of variables and headers, and whatever looks like a secret.

Only for display. The result is still JSON with the same lines, but hidden values are replaced.
"""

import re
from collections.abc import Callable, Iterator
from difflib import unified_diff
from functools import partial
from typing import Final

from assay.base.printable import MASK, escaped
from assay.cli.clients.dialect import JSON, Dialect, written
from assay.cli.clients.jsonc import Array, Node, Object, Scalar, lines, plain
from assay.core.masked_commands import Masking
from assay.core.masking import looks_random, masked_secret, masked_text, redactor
from assay.ladder.spots import Edit, edited

_HIDDEN: Final = frozenset({"env", "headers", "http_headers"})
"""Members of an entry whose values are hidden."""

_VARIABLES: Final = frozenset({"bearer_token_env_var", "env_http_headers"})
"""Members of a Codex entry whose values are names of variables that hold the secrets."""

_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
"""A usual name of a variable. A token that was put there by mistake has other characters."""

_HEADER: Final = re.compile(r"([^:]+: )(?:(?:Bearer|Basic|Token) +)?env:(.*)", re.IGNORECASE | re.DOTALL)
"""A header of the guard whose value is in a variable."""

Mask = Callable[[str], str]


def difference(before: str, after: str, name: str, dialect: Dialect = JSON) -> Iterator[str]:
    """Return a unified diff of two configurations of the file called *name*, without secrets."""
    shown = (_shown(before, dialect), _shown(after, dialect))
    # Last, and only for the shown lines: a file of Claude Code can have a hundred thousand.
    yield from map(escaped, unified_diff(*shown, fromfile=name, tofile=name, lineterm=""))


def _shown(text: str, dialect: Dialect) -> list[str]:
    return lines(masked(text, dialect).removeprefix("\ufeff"))


def masked(text: str, dialect: Dialect = JSON) -> str:
    """Return a configuration with secrets hidden."""
    return edited(text, _Masking(text, dialect).edits())


class _Masking:
    """Walks through a document and collects what to hide."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text, self._dialect = text, dialect
        self._document = dialect.document(text)
        self._redactor = redactor()
        self._hidden: list[Node] = []
        root = self._document.root
        self._sections = {id(value) for _, value in dialect.servers_in(root)}

    def edits(self) -> Iterator[Edit]:
        """Return the edits that hide all secrets."""
        yield from self._any(self._document.root, secret=False)
        # Last: by now the positions that are hidden anyway are known.
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
            # VS Code prompts for an input; its suggestion is as secret as the input.
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
            yield Edit(node.start, node.end, written(shown))

    def _comment(self, start: int, end: int) -> Iterator[Edit]:
        """Hide a comment that contains a quote: it may be a commented-out entry with its secrets."""
        text = self._text[start:end]
        if any(sign in text for sign in ("\"'=" if self._dialect.is_toml else '"')) or any(
            node.start < start < node.end for node in self._hidden
        ):
            shown = {"//": f"// {MASK}", "/*": f"/* {MASK} */"}.get(text[:2], f"# {MASK}")
        else:
            shown = self._redactor.text(text)
        if shown != text:
            yield Edit(start, end, shown)


def _is_name(word: str) -> bool:
    return bool(_VARIABLE.fullmatch(word)) and not looks_random(word) and masked_text(word) == word


def _masked_name(word: str) -> str:
    """Return *word*, hidden unless it is the name of a variable."""
    return word if _is_name(word) else masked_secret(word)


def _masked_argument(masking: Masking, before: str, word: str) -> str:
    header, shown = _HEADER.fullmatch(word) if before == "--header" else None, masking.masked(word)
    return word if header and _is_name(header[2]) else shown


def _program(entry: Node) -> str:
    """Return the program of an entry; empty without one."""
    found = entry.get("command") if isinstance(entry, Object) else None
    program = None if found is None else plain(found.value)
    return program if isinstance(program, str) else ""
