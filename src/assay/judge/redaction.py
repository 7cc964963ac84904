r"""
Hide secrets in payloads before they are written. No I/O.

A secret is recognized by its name (`password`, `apiKey`, `Authorization`) or by its form (a bearer token, a JWT,
`sk-…`, a PEM block, credentials in a URL). A value keeps its type: text becomes `[redacted]`, a number 0.

The time of every pattern is linear in the length of the text, whatever it contains: each starts with a fixed word or at
the start of a run, is possessive or ends at the first possible place, and nothing after it can cause backtracking.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import is_
from typing import Any, Final, NamedTuple

import jsonschema_rs

from assay.judge import syntax
from assay.judge.render import as_json
from assay.model.printable import MASK
from assay.model.verdict import ListEntry, Repair, Violation
from assay.rules import RULES

# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_GAP: Final = r"[\W_]{0,2}"
_NAMES: Final = "|".join((
    rf"pass{_GAP}(?:word|wd|phrase|code|key)",
    r"pwd",
    r"secret(?!ar)",
    r"token(?!i[sz])",
    rf"(?:api|access|account|auth|client|encryption|master|private|service|shared|signing|ssh){_GAP}key",
    r"authori[sz]ation",
    r"cookie",
    r"credential",
    rf"session{_GAP}(?:id|key)",
    r"bearer",
    r"jwt",
    r"cvv|cvc",
))  # fmt: skip
_NAME: Final = re.compile(rf"{_NAMES}|^(?:auth|otp|pin)$", re.IGNORECASE | re.ASCII)

# Part of the protocol, and needed to follow a conversation. It gives no access.
_NO_SECRET: Final = re.compile(rf"progress{_GAP}token", re.IGNORECASE)

# Counts of a model's tokens: `maxTokens`, `token_count`.
_COUNTED: Final = re.compile(rf"tokens|token{_GAP}(?:count|limit|budget|usage)", re.IGNORECASE)

# A schema describes a password; only these members could contain one.
_SCHEMAS: Final = frozenset({"inputSchema", "outputSchema", "requestedSchema"})
_GIVEN: Final = frozenset({"const", "default", "enum", "example", "examples"})

_REMEMBERED: Final = 100
"""Maximal characters of a name in the cache."""

_LONG_NAME: Final = 16
"""Minimal characters of a name that could itself be a secret."""

# ── looks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_KEYS: Final = "|".join((
    r"(?:sk|pk|rk)[-_][\w-]{16,}+",
    r"gh[pousr]_\w{20,}+",
    r"github_pat_\w{20,}+",
    r"glpat-[\w-]{16,}+",
    r"xox[abeoprs]-[\w-]{10,}+",
    r"(?:AKIA|ASIA)[0-9A-Z]{16,}+",
    r"AIza[\w-]{30,}+",
    r"ya29\.[\w-]{20,}+",
    r"(?:hf|npm)_[A-Za-z0-9]{20,}+",
))  # fmt: skip

_NAME_SIGNS: Final = (
    "pass", "pwd", "secret", "token", "key", "authori", "cookie", "credential", "session", "bearer", "jwt",
    "cvv", "cvc",
)  # fmt: skip
_KEY_SIGNS: Final = (
    "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "gh", "github", "glpat-", "xox", "akia", "asia", "aiza", "ya29.",
    "hf_", "npm_",
)  # fmt: skip


class _Look(NamedTuple):
    """The form of one kind of secret."""

    signs: tuple[str, ...]
    """One of these lower-case strings must be in the text: finding them takes a tenth of the time of the pattern."""
    pattern: re.Pattern[str]
    replacement: str = MASK


_LOOKS: Final = (
    # To its end marker; if it is missing, to the end of the text.
    _Look(
        ("-----begin ",),
        re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}+-----.*?(?:-----END [A-Z0-9 ]{1,60}+-----|\Z)", re.DOTALL),
    ),
    _Look(("eyj",), re.compile(r"(?<![\w-])eyJ[\w-]{5,}+\.[\w-]{5,}+(?:\.[\w-]*+)?", re.ASCII)),
    _Look(_KEY_SIGNS, re.compile(rf"(?<![A-Za-z0-9])(?:{_KEYS})", re.ASCII)),
    _Look(
        ("bearer",),
        re.compile(r"\b(bearer[ \t]{1,4}+)[\w.~+/=-]{8,}+", re.ASCII | re.IGNORECASE),
        rf"\1{MASK}",
    ),
    # "basic knowledge" is not one: nearly all credentials have a capital, a digit or a sign.
    _Look(
        ("basic",),
        re.compile(r"\b((?i:basic)[ \t]{1,4}+)(?=[\w+/]{0,256}?[A-Z0-9=+/])[\w+/=]{8,}+", re.ASCII),
        rf"\1{MASK}",
    ),
    _Look(("://",), re.compile(r"""(?<=://)[^\s/?#@"'<>\\]++@"""), rf"{MASK}@"),
    _Look(
        ("cookie",),
        re.compile(r"""\b((?:set-)?cookie["']?[ \t]{0,8}+[:=][ \t]{0,8}+)[^\s"'][^\r\n"']*+""", re.IGNORECASE),
        rf"\1{MASK}",
    ),
)

# A name and its value in text: `password=x`, `"apiKey": "x"`, `token: x`; in JSON within JSON, with its backslashes.
_ASSIGNED: Final = re.compile(
    rf"""(?P<name>(?:progress{_GAP})?(?:{_NAMES})[\w.-]{{0,32}}+)(?P<sign>\\{{0,7}}+["']?\s{{0,8}}+(?:=>|[:=])\s{{0,8}}+)"""
    r"""(?:(?P<quote>\\{0,7}+["'])(?P<quoted>.*?)(?P<end>(?<!\\)(?P=quote)|\Z)"""
    r"""|(?P<group>[\[{][^\]}]*+)"""
    r"""|(?P<bare>(?:(?:bearer|basic|digest|token)[ \t]{1,4}+)?[^\s"'\\,;&<>(){}\[\]]++))""",
    re.ASCII | re.DOTALL | re.IGNORECASE,
)

# Escaped letters of a name. An escaped quote or backslash stays: decoding it would end the string.
_ESCAPE: Final = re.compile(r"\\u00(2[013-9a-f]|[3467][0-9a-f]|5[0-9abd-f])", re.IGNORECASE)


class Redactor:
    """
    Hides secrets, and matches of *patterns*: a member by its name, or a whole string.

    The patterns are regular expressions of JSON Schema, without look-around and back-references. Raises `ValueError`
    for an invalid one.
    """

    __slots__ = ("_extra", "_patterns", "_remembered")

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)
        self._extra = _matcher(patterns)
        self._remembered: Callable[[str], bool] = lru_cache(4096)(self._is_secret)

    def __reduce__(self) -> tuple[type["Redactor"], tuple[tuple[str, ...]]]:
        """Return how another process makes the same one: from its patterns, which compile there."""
        return Redactor, (self._patterns,)

    def is_secret(self, name: str) -> bool:
        """Whether *name* is that of a secret. Peers choose names, so a long one is not cached."""
        return self._remembered(name) if len(name) <= _REMEMBERED else self._is_secret(name)

    def frame(self, text: str, value: Any = None) -> str:
        """
        Return a frame without secrets: *text* itself if it has no secrets.

        *value* is the parsed frame, None if it is unknown.
        """
        if value is None:
            value = syntax.read(text.encode())
        if isinstance(value, Violation):
            return self.unreadable(text)
        shown = self.value(value)
        return text if shown is value else syntax.write(shown).decode()

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets: the same object if it has no secrets."""
        if type(value) is str:
            return self.text(value)
        if type(value) is dict:
            return _changed(value, {self._name(name): self._member(name, item) for name, item in value.items()})
        if type(value) is list:
            return _changed(value, [self.value(item) for item in value])
        return value

    def text(self, text: str) -> str:
        """Return text without secrets: the same object if it has no secrets."""
        if len(text) < 4:
            return text
        if self._extra is not None and self._extra(text):
            return MASK
        within = text.lower().__contains__
        shown = _ASSIGNED.sub(_hidden_value, text) if any(map(within, _NAME_SIGNS)) else text
        for look in _LOOKS:
            if any(map(within, look.signs)):
                shown = look.pattern.sub(look.replacement, shown)
        return text if shown == text else shown

    def unreadable(self, text: str) -> str:
        """Return an ambiguous or invalid frame without secrets. Escapes are decoded: they could hide a name."""
        plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
        shown = self.text(plain)
        return text if shown == plain else shown

    def violation(self, violation: Violation) -> dict[str, Any]:
        """Return a violation for the journal: the found value may be part of a secret."""
        found = self.found(violation)
        shown = {**as_json(violation), "found": found, "hint": self.hint(violation, found)}
        return shown if violation.entry is None else {**shown, "entry": self.entry(violation.entry)}

    def repair(self, repair: Repair) -> dict[str, Any]:
        """Return a repair for the journal: the peer chose the names in its path."""
        return {**repair.written, "path": self.text(repair.path)}

    def entry(self, entry: ListEntry) -> dict[str, str]:
        """Return an entry of a list for the journal: the server chose its name."""
        return {"kind": entry.kind, "name": self.text(entry.name)}

    def found(self, violation: Violation) -> str:
        """Return the found value of a violation, unless it may be part of a secret."""
        steps = violation.at.replace("~1", "/").split("/")
        return MASK if any(map(self.is_secret, steps)) else self.text(violation.found)

    def hint(self, violation: Violation, found: str) -> str:
        """Return the hint of a violation whose found value is shown as *found*. A hint may repeat the value."""
        return violation.hint if found == violation.found else RULES[violation.rule].fix

    def _is_secret(self, name: str) -> bool:
        if self._extra is not None and self._extra(name):
            return True
        return _NAME.search(name) is not None and _NO_SECRET.fullmatch(name) is None

    def _name(self, name: str) -> str:
        return name if len(name) < _LONG_NAME else self.text(name)

    def _member(self, name: str, value: Any) -> Any:
        if name in _SCHEMAS:
            return self._schema(value, secret=False)
        if not self.is_secret(name):
            return self.value(value)
        if type(value) in (int, float) and _COUNTED.search(name):
            return value
        return _hidden(value)

    def _schema(self, value: Any, *, secret: bool) -> Any:
        """Return a schema without secrets in defaults and examples. The rest of the schema stays."""
        if type(value) is dict:
            return _changed(value, {name: self._keyword(name, item, secret) for name, item in value.items()})
        if type(value) is list:
            return _changed(value, [self._schema(item, secret=secret) for item in value])
        return self.value(value)

    def _keyword(self, name: str, value: Any, secret: bool) -> Any:
        if name in _GIVEN:
            return _hidden(value) if secret else self.value(value)
        return self._schema(value, secret=secret or self.is_secret(name))


def without_secrets(lines: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Return *lines* of text without secrets and matches of *patterns*."""
    redactor = Redactor(patterns)
    return [redactor.text(each) for each in lines]


def _hidden(value: Any) -> Any:
    """Return a mask of the same type. A boolean or null stays: it reveals nothing."""
    if type(value) is dict:
        return _changed(value, {name: _hidden(item) for name, item in value.items()})
    if type(value) is list:
        return _changed(value, [_hidden(item) for item in value])
    if type(value) is str:
        return MASK if value else value
    if type(value) is int or type(value) is float:
        return type(value)() if value else value
    return value


def _changed(before: Any, after: Any) -> Any:
    """Return *after*, or *before* itself if nothing was replaced."""
    if type(before) is dict:
        same = all(map(is_, before, after)) and all(map(is_, before.values(), after.values()))
    else:
        same = all(map(is_, before, after))
    return before if same and len(before) == len(after) else after


def _hidden_value(found: re.Match[str]) -> str:
    """Return an assignment in text with its value hidden."""
    name, whole = found["name"], found[0]
    value = found["quoted"] or found["bare"] or found["group"]
    if not value or (found["group"] or "").lstrip("[{") == MASK[1:-1]:
        return whole
    if _NO_SECRET.match(name) or (_COUNTED.search(name) and value.replace(".", "").isdigit()):
        return whole
    if found["quote"] is not None:
        return f"{name}{found['sign']}{found['quote']}{MASK}{found['end']}"
    return f"{name}{found['sign']}{found['group'][0] if found['group'] else ''}{MASK}"


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool] | None:
    """Return a function that checks whether a text matches one of *patterns*, in linear time."""
    if not patterns:
        return None

    options = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)
    for pattern in patterns:
        try:
            jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options, offline=True)
        except ValueError:
            raise ValueError(f"not a valid regular expression without look-around: {pattern[:60]}") from None
    together = {"anyOf": [{"pattern": pattern} for pattern in patterns]}
    is_valid = jsonschema_rs.validator_for(together, pattern_options=options, offline=True).is_valid
    return lambda text: bool(is_valid(text))
