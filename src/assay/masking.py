"""
Command lines and URLs without what looks like a secret. No I/O.

What is hidden stays hidden if it is hidden once more, so that a masked text can be compared with any other.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from assay.journal.redaction import MASK, Redactor

_SIGNS: Final = {"-e": "=", "--env": "=", "-H": ":", "--header": ":"}
"""Options for variables and headers, as docker, mcp-remote and the guard have them, and what is before the value."""

# The name of a variable or of a question that the client asks is no secret, and one likes to see that it is still
# there. A default (`${NAME:-value}`) may be one.
_REFERENCE: Final = re.compile(
    r"(?:(?:bearer|basic|token) +)?(?:\$\{[A-Za-z_]\w*(?::[A-Za-z_][\w.-]*)?\})+", re.IGNORECASE
)
_QUERY: Final = re.compile(r"([?&][^=&#\s]*=)[^&#\s]+")


@cache
def redactor() -> Redactor:
    """The redactor for everything here."""
    return Redactor()


def masked_secret(value: str) -> str:
    """*value*, which is a secret, hidden; a reference to a variable is none."""
    return value if not value or _REFERENCE.fullmatch(value) else MASK


def masked_text(text: str) -> str:
    """*text* without the values of queries, and without what looks like a secret."""
    return redactor().text(_QUERY.sub(rf"\1{MASK}", text))


def masked_argument(before: str, word: str) -> str:
    """*word*, an argument after *before*, without its secrets."""
    option, equals, value = word.partition("=")
    if equals and option in _SIGNS:
        return f"{option}={masked_argument(option, value)}"
    if before in _SIGNS:
        name, sign, value = word.partition(_SIGNS[before])
        return f"{name}{sign}{' ' * value.startswith(' ')}{masked_secret(value.lstrip())}"
    if before.startswith("-") and not word.startswith("-") and redactor().is_secret(before):
        return masked_secret(word)
    return masked_text(word)


def masked_command(words: Iterable[str]) -> tuple[str, ...]:
    """A command and its arguments, without their secrets."""
    masked: list[str] = []
    before = ""
    for word in words:
        masked.append(masked_argument(before, word))
        before = word
    return tuple(masked)


def masked_url(url: str) -> str:
    """*url* without name and password, and with nothing of its query and fragment but the names."""
    address, sign, rest = url.partition("?")
    if not sign:
        address, sign, rest = url.partition("#")
    if not sign:
        return redactor().text(url)
    return redactor().text(address) + sign + "&".join(map(_masked_parameter, rest.split("&")))


def _masked_parameter(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    if equals:
        return f"{redactor().text(name)}={masked_secret(value)}"
    return masked_secret(parameter)


def is_masked(texts: Iterable[str]) -> bool:
    """Whether something is hidden in one of *texts*."""
    return any(MASK in each for each in texts)
