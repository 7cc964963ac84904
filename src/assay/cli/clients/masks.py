"""
Hide secrets in a configuration before it is shown: values of variables and headers, and whatever looks like a secret.

Only for display. The result is still JSON with the same lines, but hidden values are replaced.
"""

import re
from collections.abc import Callable, Collection, Iterator
from difflib import unified_diff
from functools import partial
from typing import Final

from assay.base.printable import MASK, escaped
from assay.cli.clients.dialect import JSON, Dialect, written
from assay.cli.clients.jsonc import Array, Node, Object, Scalar, lines, members, plain
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
    old, new = (lines(masked(text, dialect).removeprefix("\ufeff")) for text in (before, after))
    # Last, and only for the shown lines: a file of Claude Code can have a hundred thousand.
    yield from map(escaped, unified_diff(old, new, fromfile=name, tofile=name, lineterm=""))


def masked(text: str, dialect: Dialect = JSON) -> str:
    """Return a configuration with secrets hidden."""
    document = dialect.document(text)
    walk = _Walk({id(value) for _, value in dialect.servers_in(document.root)})
    edits = list(walk.edits(document.root, masked_text))
    for start, end in document.comments:
        comment = text[start:end]
        # A comment with a quote may be a commented-out entry with its secrets.
        quoted = any(sign in comment for sign in ("\"'=" if dialect.is_toml else '"'))
        if quoted or any(node.start < start < node.end for node in walk.hidden):
            shown = {"//": f"// {MASK}", "/*": f"/* {MASK} */"}.get(comment[:2], f"# {MASK}")
        else:
            shown = redactor().text(comment)
        edits.append(Edit(start, end, shown))
    return edited(text, edits)


class _Walk:
    """Walks through a document and yields what to hide; *sections* are the objects with the servers."""

    def __init__(self, sections: Collection[int]) -> None:
        self._sections = sections
        self.hidden: list[Node] = []
        """Values of which everything is hidden, comments included."""

    def edits(self, node: Node, mask: Mask) -> Iterator[Edit]:
        """Yield the edits that hide the secrets in *node*, where *mask* hides those of a string."""
        if isinstance(node, Array):
            for item in node.items:
                yield from self.edits(item, mask)
        elif isinstance(node, Object) and id(node) in self._sections:
            for _, entry in node.members:
                yield from self._entry(entry)
        elif isinstance(node, Object):
            # VS Code prompts for an input; its suggestion is as secret as the input.
            password = node.get("password")
            typed_unseen = password is not None and plain(password.value) is True
            for key, value in node.members:
                hidden = redactor().is_secret(key.value) or (typed_unseen and key.value == "default")
                yield from self.edits(value, masked_secret if hidden else mask)
        elif isinstance(node.value, str):
            if (shown := mask(node.value)) != node.value:
                yield Edit(node.start, node.end, written(shown))
        elif mask is not masked_text and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            yield Edit(node.start, node.end, "0")

    def _entry(self, entry: Node) -> Iterator[Edit]:
        for key, value in members(entry):
            if key.value == "args" and isinstance(value, Array):
                program = plain(entry).get("command")
                masking, before = Masking(program if isinstance(program, str) else ""), ""
                for item in value.items:
                    if isinstance(item, Scalar) and isinstance(item.value, str):
                        yield from self.edits(item, partial(_masked_argument, masking, before))
                        before = item.value
            elif key.value in _HIDDEN:
                self.hidden.append(value)
                yield from self.edits(value, masked_secret)
            elif key.value in _VARIABLES:
                yield from self.edits(value, _masked_name)
            else:
                yield from self.edits(value, masked_secret if redactor().is_secret(key.value) else masked_text)


def _is_name(word: str) -> bool:
    return bool(_VARIABLE.fullmatch(word)) and not looks_random(word) and masked_text(word) == word


def _masked_name(word: str) -> str:
    """Return *word*, hidden unless it is the name of a variable."""
    return word if _is_name(word) else masked_secret(word)


def _masked_argument(masking: Masking, before: str, word: str) -> str:
    header, shown = _HEADER.fullmatch(word) if before == "--header" else None, masking.masked(word)
    return word if header and _is_name(header[2]) else shown
