r"""
Hides secrets in payloads that are to be written down. No I/O.

Two ways to know one: by the name it stands under (`password`, `apiKey`, `Authorization`), and by its looks (a bearer
token, a JWT, `sk-…`, a PEM block, credentials in a URL). A value keeps its type: text becomes `[redacted]`, a number 0.

Every pattern takes time that grows with the text only, whatever is in it: each begins with a fixed word or at the start
of a run, is possessive or ends at the first thing it can end at, and is followed by nothing that could make it try
again.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import is_
from typing import Any, Final, NamedTuple

from assay.base.mask import MASK
from assay.base.verdict import ListEntry, Violation
from assay.core.render import as_json
from assay.ladder import syntax

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

# A part of the protocol, without which a conversation makes no sense; nobody gets in with it.
_NO_SECRET: Final = re.compile(rf"progress{_GAP}token", re.IGNORECASE)

# Tokens that a model takes are counted: `maxTokens`, `token_count`.
_COUNTED: Final = re.compile(rf"tokens|token{_GAP}(?:count|limit|budget|usage)", re.IGNORECASE)

# A schema says what a password looks like; only these members could hold one.
_SCHEMAS: Final = frozenset({"inputSchema", "outputSchema", "requestedSchema"})
_GIVEN: Final = frozenset({"const", "default", "enum", "example", "examples"})

_REMEMBERED: Final = 100
"""Characters of a name up to which it is remembered whether it is that of a secret."""

_LONG_NAME: Final = 16
"""Characters from which on a name itself could be a secret."""

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
    """How one kind of secret looks."""

    signs: tuple[str, ...]
    """One of these is in it, in lower case: to look for them takes a tenth of the time of the pattern."""
    pattern: re.Pattern[str]
    replacement: str = MASK


_LOOKS: Final = (
    # To its end; one that was cut short, to the end of the text.
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
    # "basic knowledge" is none: nearly all of them have a capital, a digit or a sign.
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

# Letters of a name, spelt as escapes. A quote or a backslash that is spelt so stays: it would end a string.
_ESCAPE: Final = re.compile(r"\\u00(2[013-9a-f]|[3467][0-9a-f]|5[0-9abd-f])", re.IGNORECASE)


class Redactor:
    """
    Hides what looks like a secret, and what *patterns* match besides: a member by its name, or a whole string.

    They are regular expressions as JSON Schema has them, without look-around and back-references. Raises `ValueError`
    for one that is none.
    """

    __slots__ = ("_extra", "_remembered")

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._extra = _matcher(patterns)
        self._remembered: Callable[[str], bool] = lru_cache(4096)(self._is_secret)

    def is_secret(self, name: str) -> bool:
        """Whether what stands under *name* is a secret. Names are the peer's: a long one is not remembered."""
        return self._remembered(name) if len(name) <= _REMEMBERED else self._is_secret(name)

    def frame(self, text: str, value: Any = None) -> str:
        """
        A frame without its secrets: the very *text* if there are none.

        *value* is what was read from it, None if that is not known.
        """
        if value is None:
            value = syntax.read(text.encode())
        if isinstance(value, Violation):
            return self.unreadable(text)
        shown = self.value(value)
        return text if shown is value else syntax.write(shown).decode()

    def value(self, value: Any) -> Any:
        """A JSON value without its secrets: the very same if there are none."""
        if type(value) is str:
            return self.text(value)
        if type(value) is dict:
            return _changed(value, {self._name(name): self._member(name, item) for name, item in value.items()})
        if type(value) is list:
            return _changed(value, [self.value(item) for item in value])
        return value

    def text(self, text: str) -> str:
        """Text without its secrets: the very same if there are none."""
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
        """A frame that has no one reading. Escapes are read, so that a name cannot hide behind them."""
        plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
        shown = self.text(plain)
        return text if shown == plain else shown

    def violation(self, violation: Violation) -> dict[str, Any]:
        """A violation as the journal has it: what was found may be the beginning of a secret."""
        shown = {**as_json(violation), "found": self.found(violation)}
        return shown if violation.entry is None else {**shown, "entry": self.entry(violation.entry)}

    def entry(self, entry: ListEntry) -> dict[str, str]:
        """An entry of a list as the journal has it: the server chose its name."""
        return {"kind": entry.kind, "name": self.text(entry.name)}

    def found(self, violation: Violation) -> str:
        """What a violation has found, unless that may be the beginning of a secret."""
        steps = violation.at.replace("~1", "/").split("/")
        return MASK if any(map(self.is_secret, steps)) else self.text(violation.found)

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
        """A schema without the secrets that it gives as defaults or examples. What it says of them stays."""
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
    """Return *lines* of text without what looks like a secret or is matched by *patterns*."""
    redactor = Redactor(patterns)
    return [redactor.text(each) for each in lines]


def _hidden(value: Any) -> Any:
    """A secret of the same type. Neither a boolean nor null tells anything."""
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
    """*after*, or *before* itself if nothing in it was replaced."""
    if type(before) is dict:
        same = all(map(is_, before, after)) and all(map(is_, before.values(), after.values()))
    else:
        same = all(map(is_, before, after))
    return before if same and len(before) == len(after) else after


def _hidden_value(found: re.Match[str]) -> str:
    """The value of an assignment in text, hidden."""
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
    """What says whether one of *patterns* is in a text, in time that grows with the text only."""
    if not patterns:
        return None
    import jsonschema_rs  # noqa: PLC0415 - its regular expressions never try again; most have no patterns of their own

    options = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)
    for pattern in patterns:
        try:
            jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options, offline=True)
        except ValueError:
            raise ValueError(f"no regular expression, or one with look-around: {pattern[:60]}") from None
    together = {"anyOf": [{"pattern": pattern} for pattern in patterns]}
    is_valid = jsonschema_rs.validator_for(together, pattern_options=options, offline=True).is_valid
    return lambda text: bool(is_valid(text))
