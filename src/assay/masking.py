"""
Command lines and URLs without what looks like a secret. No I/O.

What is hidden stays hidden if it is hidden once more, so that a masked text can be compared with any other.
"""

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from typing import Final

from assay.journal.redaction import MASK, Redactor

_SIGNS: Final = {"-e": "=", "--env": "=", "-H": ":", "--header": ":", "--headers": ":"}
"""Options for variables and headers, as docker, mcp-remote and the guard have them, and what is before the value."""

_ATTACHED: Final = re.compile(r"(-e|-H)(?=[A-Za-z_])(.+)", re.DOTALL)
"""The same options with the value in one word: ``-eNAME=value``."""

_ACCOUNTS: Final = frozenset({"-u", "--user", "--auth", "--basic-auth", "--login"})
"""Options for a name and a password, with a colon between them."""

# The name of a variable or of a question that the client asks is no secret, and one likes to see that it is still
# there. A default (`${NAME:-value}`) may be one.
_REFERENCE: Final = re.compile(
    r"(?:(?:bearer|basic|token) +)?(?:\$\{[A-Za-z_]\w*(?::[A-Za-z_][\w.-]*)?\})+", re.IGNORECASE
)
_QUERY: Final = re.compile(r"([?&][^=&#\s]*=)[^&#\s]+")
_URL_PATH: Final = re.compile(r"(?<=://)([^\s/?#]*)(/[^\s?#\"']*)")

# Names that only on a command line are those of secrets: elsewhere a key may be anything.
_SHORT_NAMES: Final = r"(?:keys?|pass|pat|auth|creds?|sig|signature|pw)"
_SHORT_NAME: Final = re.compile(rf"(?:^|.*[\W_]){_SHORT_NAMES}", re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    rf"""((?<![^\W_]){_SHORT_NAMES}["']?\s{{0,4}}+[:=]\s{{0,4}}+["']?)([^\s"'&,;]++)""", re.IGNORECASE
)
_OPTION_WITHIN: Final = re.compile(r"((?<!\S)--?[A-Za-z][\w-]*+[ \t]{1,4}+)([^\s-][^\s]*+)")

_FEWEST: Final = 16
_FEWEST_OF_OPTION: Final = 8
"""Characters from which on a text can look random; shorter ones are names. Less is enough after ``-p`` or ``-k``."""

_LETTER: Final = re.compile(r"(-[A-Za-z])(.*)", re.DOTALL)
"""An option of one letter, and a value in the same word."""

_ENTROPIC: Final = 0.3
"""
Changes between small letters, capitals and digits, for each character of a text that looks random.

Random letters and digits have 0.6, hexadecimal digits 0.47; `modelContextProtocolServer2` has 0.27.
"""
_TOKEN: Final = re.compile(r"[A-Za-z0-9_+/-]+={0,2}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@cache
def redactor() -> Redactor:
    """The redactor for everything here."""
    return Redactor()


def masked_secret(value: str) -> str:
    """*value*, which is a secret, hidden; a reference to a variable is none."""
    return value if not value or _REFERENCE.fullmatch(value) else MASK


def looks_random(text: str, fewest: int = _FEWEST) -> bool:
    """Return whether *text*, of at least *fewest* characters, looks like a key or an id that a machine made."""
    if len(text) < fewest or not _TOKEN.fullmatch(text):
        return False
    if _UUID.fullmatch(text):
        return True
    kinds = ["d" if each.isdigit() else "u" if each.isupper() else "l" if each.islower() else "" for each in text]
    if "d" not in kinds or ("l" not in kinds and "u" not in kinds):
        return False
    changes = sum(one != other for one, other in pairwise(kinds) if one and other)
    return changes / (len(text) - 1) >= _ENTROPIC


def masked_text(text: str) -> str:
    """*text* without the values of queries, and without what looks like a secret."""
    shown = redactor().text(_QUERY.sub(rf"\1{MASK}", text))
    shown = _ASSIGNED.sub(lambda found: found[1] + _unless_path(found[2]), shown)
    return _URL_PATH.sub(lambda found: found[1] + masked_path(found[2]), shown)


def masked_path(path: str) -> str:
    """Return the *path* of a URL without segments that look random, or follow one that is called token or key."""
    before, shown = "", []
    for segment in path.split("/"):
        # A short segment after /keys/ is one of the API's own words.
        named = len(segment) >= 8 and (redactor().is_secret(before) or _SHORT_NAME.fullmatch(before))
        shown.append(masked_secret(segment) if named or looks_random(segment) else segment)
        before = segment
    return "/".join(shown)


def _unless_path(value: str) -> str:
    """*value*, hidden unless it is a file, a number or a switch: `--key server.pem` is no secret."""
    plain = value.isdigit() or value.lower() in {"true", "false", "none", "null", "yes", "no"}
    return value if plain or re.match(r"[./~]|[A-Za-z]:\\|.*\.\w{2,4}$", value) else masked_secret(value)


def masked_argument(before: str, word: str) -> str:
    """*word*, an argument after *before*, without its secrets."""
    attached = _ATTACHED.fullmatch(word)
    if attached and _SIGNS[attached[1]] in attached[2]:
        return attached[1] + masked_argument(attached[1], attached[2])
    option, equals, value = word.partition("=")
    if equals and option in _SIGNS:
        return f"{option}={masked_argument(option, value)}"
    if before in _SIGNS:
        name, sign, value = word.partition(_SIGNS[before])
        return f"{name}{sign}{' ' * value.startswith(' ')}{masked_secret(value.lstrip())}"
    if before.startswith("-") and not _is_option(word):
        if redactor().is_secret(before):
            return masked_secret(word)
        if _SHORT_NAME.fullmatch(before.lstrip("-")) and before.startswith("--"):
            return _masked_account(word) if before in _ACCOUNTS else _unless_path(word)
    if before in _ACCOUNTS:
        return _masked_account(word)
    letter, joined = _LETTER.fullmatch(before), _LETTER.fullmatch(word)
    if letter and not letter[2] and looks_random(word, _FEWEST_OF_OPTION):
        return MASK
    if joined and looks_random(joined[2], _FEWEST_OF_OPTION):
        return joined[1] + MASK
    return _masked_word(word)


def _is_option(word: str) -> bool:
    """Whether *word* is an option rather than a value: a secret may begin with a hyphen as well."""
    return word.startswith("--") or (word.startswith("-") and len(word) <= 2)


def _masked_account(word: str) -> str:
    """``name:password`` without the password; Docker has numbers there."""
    name, colon, password = word.partition(":")
    return f"{name}:{masked_secret(password)}" if colon and not password.isdigit() else _masked_word(word)


def _masked_word(word: str) -> str:
    """An argument that stands for itself, or ``--option=value``."""
    name, equals, value = word.partition("=")
    if equals and looks_random(value):
        return f"{name}={masked_secret(value)}"
    if not word.startswith(("/", "-")) and looks_random(word):
        return MASK
    if any(each in word for each in " \t"):
        word = _OPTION_WITHIN.sub(lambda found: found[1] + masked_argument(found[1].strip(), found[2]), word)
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
    """
    *url* without name and password, with nothing of its query and fragment but the names.

    A segment of its path that looks random is hidden, too: some servers give each user an address.
    """
    address, sign, rest = url.partition("?")
    if not sign:
        address, sign, rest = url.partition("#")
    if not sign:
        return masked_text(url)
    return masked_text(address) + sign + "&".join(map(_masked_parameter, rest.split("&")))


def _masked_parameter(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    if equals:
        return f"{redactor().text(name)}={masked_secret(value)}"
    return masked_secret(parameter)


def is_masked(texts: Iterable[str]) -> bool:
    """Whether something is hidden in one of *texts*."""
    return any(MASK in each for each in texts)
