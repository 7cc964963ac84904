"""
Hide secrets in command lines. No I/O.

Masking twice gives the same result, so that masked commands can be compared. In doubt a word is hidden: a lock goes
into version control, which keeps everything.
"""

import re
from collections.abc import Iterable
from os.path import basename
from typing import Final

from assay.base.printable import MASK
from assay.base.server_names import CONTAINERS, RUNNERS, VERBS
from assay.core.masking import is_path, is_secret_name, looks_random, masked_named, masked_secret, masked_text

_SIGNS: Final = {"-e": "=", "--env": "=", "-b": "=", "--build-arg": "=", "-H": ":", "--header": ":", "--headers": ":"}
"""Options for variables, cookies and headers, as in docker, curl and the guard, with the separator before the value."""

_ATTACHED: Final = re.compile(r"(-e|-b|-H)(?=[A-Za-z_])(.+)", re.DOTALL)
"""The same options with the value in the same word: ``-eNAME=value``."""

_ACCOUNTS: Final = frozenset({"-u", "--user", "-user", "--login", "-login", "--proxy-user", "-U"})
"""Options for a user name and a password, separated by a colon."""

_PASSWORDS: Final = ("-p", "-k")
"""Options of one letter that many programs use for a password or a key."""

_PORTS: Final = re.compile(
    r"(?:[\d.]+:|\[[\da-fA-F:.]+\]:)?\d{1,5}(?:-\d{1,5})?(?::\d{1,5}(?:-\d{1,5})?)?(?:/(?:tcp|udp|sctp))?", re.ASCII
)
"""A port, or ports of a container: ``127.0.0.1:8080:80/tcp``."""

_PACKAGES: Final = RUNNERS | {"npm", "pnpm", "yarn", "bun", "uv", "mkdir", "java", "tsc"}
"""Programs whose ``-p`` takes a package, a version or a path."""

_LONG_NAME: Final = re.compile(
    r"-(?:ports?|paths?|pid(?:file)?|profile|project|protocol|prefix|plugins?|proxy|packages?|pattern|preset|provider"
    r"|platform|public|poll|pool|params|kube(?:config)?|kind|keep(?:alive)?|bind|base|env|endpoint"
    r"|keys?|pass(?:word|wd|phrase)?|pat|pin|pwd?)(?![a-z])"
)
"""A long option with one hyphen: ``-port`` is not ``-p`` with ``ort``. What follows ``-p`` otherwise is hidden."""

_NAME: Final = re.compile(r"--?[A-Za-z][\w.-]*")
_OPTION: Final = re.compile(r"(--?[A-Za-z][\w.-]*)=(.*)", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_NEGATED: Final = re.compile(r"-+(?:no|disable|skip|without|require|ask)[-_].*", re.IGNORECASE)
"""Switches without a value."""

_CODE: Final = frozenset({"-c", "-lc", "-ic", "/c", "/C"})
"""Options of shells that take a command line as one word."""

_WITHIN: Final = re.compile(r"""((?<!\S)--?[A-Za-z][\w-]*+[ \t]{1,4}+)("[^"]*+"|'[^']*+'|[^\s-][^\s]*+)""")
"""An option and its value inside a command line that is one word."""

_FEWEST: Final = 8
"""Minimal length of a text after an option of one letter that can look random."""

_LETTER: Final = re.compile(r"(-[A-Za-z])(.*)", re.DOTALL)
"""An option of one letter, and a value in the same word."""


class Masking:
    """Hides the secrets in one command, word by word."""

    def __init__(self, program: str = "") -> None:
        """*program* is the first word, if only the arguments are masked."""
        self._before = program
        self._launcher = _base(program)
        """The program, as long as only options and verbs follow it: later options may belong to the server."""

    def masked(self, word: str) -> str:
        """Return the next *word* without its secrets."""
        shown = masked_argument(self._before, word, self._launcher)
        if not self._before:
            self._launcher = _base(shown)
        elif not shown.startswith("-") and (shown not in VERBS or self._before.startswith("-")):
            self._launcher = ""
        # As it is shown: masked again, the next word has the same word before it.
        self._before = shown
        return shown


def _base(word: str) -> str:
    return basename(word.replace("\\", "/")).removesuffix(".exe").removesuffix(".cmd")


def masked_command(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command and its arguments without secrets."""
    masking = Masking()
    return tuple(masking.masked(word) for word in words)


def masked_argument(before: str, word: str, launcher: str = "") -> str:
    """Return *word*, the argument after *before*, without secrets; *launcher* is the program of the option *before*."""
    # After --option=value, the next word is not a value.
    option = before if _NAME.fullmatch(before) else ""
    if option and not _is_option(word) and not _NEGATED.fullmatch(option) and is_secret_name(option.lstrip("-")):
        return masked_named(option.lstrip("-"), word)
    if option in _SIGNS and _SIGNS[option] in word:
        return _masked_pair(_SIGNS[option], word)
    if word.startswith("-"):
        return _masked_option(word, launcher)
    if option:
        return _masked_value(option, word, launcher)
    assigned = None if before in _CODE else _ASSIGNMENT.fullmatch(word)
    if assigned and is_secret_name(assigned[1]):
        return f"{assigned[1]}={masked_named(assigned[1], assigned[2])}"
    return masked_secret(word) if before.lower() == "bearer" else _masked_word(word)


def _is_option(word: str) -> bool:
    """Whether *word* is an option rather than a value: a secret may start with a hyphen, too."""
    return word.startswith("--") or (word.startswith("-") and len(word) <= 2)


def _masked_pair(sign: str, word: str) -> str:
    """Return ``NAME=value`` or ``Name: value`` without the value."""
    name, _, value = word.partition(sign)
    return f"{name}{sign}{' ' * value.startswith(' ')}{masked_secret(value.lstrip())}"


def _masked_option(word: str, launcher: str) -> str:
    """Return an option masked, with its value if that is in the same word."""
    letter = word[:2]
    if len(word) > 2 and letter in _PASSWORDS and not _is_long(word):
        return letter + _masked_password(letter, word[2:], launcher)
    attached = None if _is_long(word) else _ATTACHED.fullmatch(word)
    if attached and _SIGNS[attached[1]] in attached[2]:
        return attached[1] + _masked_pair(_SIGNS[attached[1]], attached[2])
    given = _OPTION.fullmatch(word)
    if given:
        return f"{given[1]}={_masked_given(given[1], given[2], launcher)}"
    if letter == "-u" and not _is_long(word):
        return letter + _masked_account(word[2:], launcher)
    joined = _LETTER.fullmatch(word)
    return letter + MASK if joined and looks_random(joined[2], _FEWEST) else _masked_word(word)


def _is_long(word: str) -> bool:
    """Return whether an option with one hyphen has a long name, or is a group of several options."""
    return _LONG_NAME.match(word) is not None or (len(word) <= 4 and word[1:].isalpha())


def _masked_given(option: str, value: str, launcher: str) -> str:
    """Return the masked value of ``--option=value``."""
    if is_secret_name(option.lstrip("-")):
        return masked_named(option.lstrip("-"), value)
    if option in _SIGNS and _SIGNS[option] in value:
        return _masked_pair(_SIGNS[option], value)
    return masked_secret(value) if looks_random(value) else _masked_value(option, value, launcher)


def _masked_value(option: str, value: str, launcher: str) -> str:
    """Return the masked value of an option whose name does not indicate a secret."""
    if option in _ACCOUNTS:
        return _masked_account(value, launcher)
    if option in _PASSWORDS:
        return _masked_password(option, value, launcher)
    if _LETTER.fullmatch(option) and len(option) == 2 and looks_random(value, _FEWEST):
        return MASK
    return _masked_word(value)


def _masked_account(word: str, launcher: str) -> str:
    """Return ``name:password`` without the password. A container's user and group, or a Windows path, is no account."""
    name, colon, password = word.partition(":")
    numbers = name.isdigit() and password.isdigit()
    if not colon or numbers or launcher in CONTAINERS or re.match(r"[A-Za-z]:[\\/]", word):
        return _masked_word(word)
    shown = _masked_word(word)
    return shown if "://" in shown else f"{name}:{masked_secret(password)}"


def _masked_password(option: str, value: str, launcher: str) -> str:
    """Return the value of ``-p`` or ``-k``, hidden unless it is a port, path or URL, or the launcher differs."""
    other = option == "-p" and launcher in _PACKAGES
    if other or (option == "-p" and _PORTS.fullmatch(value)) or is_path(value):
        return _masked_word(value)
    shown = _masked_word(value)
    return shown if "://" in shown else masked_secret(value)


def _masked_word(word: str) -> str:
    """Return a plain argument masked."""
    name, equals, value = word.partition("=")
    if equals and looks_random(value):
        word = f"{name}={MASK}"
    if not word.startswith(("/", "-")) and looks_random(word):
        return MASK
    if any(each in word for each in " \t"):
        word = _WITHIN.sub(lambda found: found[1] + masked_argument(found[1].strip(), found[2]), word)
    return masked_text(word)
