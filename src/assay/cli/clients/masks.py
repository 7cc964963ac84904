"""
Hide secrets in a configuration before it is shown: values of variables and headers, and whatever looks like a secret.

Only for display. The result is still JSON with the same lines, but hidden values are replaced.
"""

import re
from collections.abc import Callable, Iterator
from difflib import unified_diff
from typing import Final

from assay.cli.clients.dialect import JSON, Dialect, written
from assay.cli.clients.parsing import MARK, Node, lines
from assay.judge.masking import looks_random, masked_argument, masked_secret, masked_text, redactor
from assay.judge.text_edit import Edit, edited
from assay.model.printable import MASK, escaped

_HIDDEN: Final = frozenset({"env", "headers", "http_headers"})
"""Members of an entry whose values are hidden."""

_VARIABLES: Final = frozenset({"bearer_token_env_var", "env_http_headers"})
"""Members of a Codex entry whose values are names of variables that hold the secrets."""

_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
"""A usual name of a variable."""

_HEADER: Final = re.compile(r"([^:]+: )(?:(?:Bearer|Basic|Token) +)?env:(.*)", re.IGNORECASE | re.DOTALL)
"""A header of the guard whose value is in a variable."""

Mask = Callable[[str], str]


def difference(before: str, after: str, name: str, dialect: Dialect = JSON) -> Iterator[str]:
    """Return a unified diff of two configurations of the file called *name*, without secrets."""
    old, new = (lines(masked(text, dialect).removeprefix(MARK)) for text in (before, after))
    # Last, and only for the shown lines: a file of Claude Code can have a hundred thousand.
    yield from map(escaped, unified_diff(old, new, fromfile=name, tofile=name, lineterm=""))


def masked(text: str, dialect: Dialect = JSON) -> str:
    """Return a configuration with secrets hidden."""
    document = dialect.document(text)
    entries = [member.value for _, section in dialect.servers_in(document.root) for member in section.members.values()]
    edits = list(_edits(document.root, masked_text, {id(entry) for entry in entries}))
    hidden = [value for entry in entries for key, (_, value) in entry.members.items() if key in _HIDDEN]
    for start, end in document.comments:
        comment = text[start:end]
        # A comment with a quote may be a commented-out entry with its secrets.
        quoted = any(sign in comment for sign in ("\"'=" if dialect.is_toml else '"'))
        if quoted or any(node.start < start < node.end for node in hidden):
            shown = {"//": f"// {MASK}", "/*": f"/* {MASK} */"}.get(comment[:2], f"# {MASK}")
        else:
            shown = redactor().text(comment)
        edits.append(Edit(start, end, shown))
    return edited(text, edits)


def _edits(node: Node, mask: Mask, entries: set[int]) -> Iterator[Edit]:
    """Yield the edits that hide the secrets in *node*. *mask* hides those of a string; *entries* are the servers."""
    if isinstance(node.value, str):
        if (shown := mask(node.value)) != node.value:
            yield Edit(node.start, node.end, written(shown))
    elif mask is not masked_text and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        yield Edit(node.start, node.end, "0")
    for item in node.items:
        yield from _edits(item, mask, entries)
    # VS Code prompts for an input; its suggestion is as secret as the input.
    typed_unseen = "password" in node.members and node.members["password"].value.value is True
    for key, (_, value) in node.members.items():
        if id(node) not in entries:
            is_hidden = redactor().is_secret(key) or (typed_unseen and key == "default")
            yield from _edits(value, masked_secret if is_hidden else mask, entries)
        elif key == "args" and value.items:
            yield from _in_arguments(value)
        elif key in _VARIABLES:
            yield from _edits(value, lambda word: word if _is_name(word) else masked_secret(word), entries)
        else:
            is_hidden = key in _HIDDEN or redactor().is_secret(key)
            yield from _edits(value, masked_secret if is_hidden else masked_text, entries)


def _in_arguments(args: Node) -> Iterator[Edit]:
    before = shown = ""
    for word in args.items:
        if isinstance(word.value, str):
            header = _HEADER.fullmatch(word.value) if before == "--header" else None
            # Also for a header that is shown: what is masked depends on the words before.
            shown = masked_argument(shown, word.value)
            if shown != word.value and not (header and _is_name(header[2])):
                yield Edit(word.start, word.end, written(shown))
            before = word.value


def _is_name(word: str) -> bool:
    """Whether *word* is the name of a variable, and not a token that was put there by mistake."""
    return bool(_VARIABLE.fullmatch(word)) and not looks_random(word) and masked_text(word) == word
