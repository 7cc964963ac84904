"""
The header rules of Streamable HTTP, part of the fourth rung: what a request says of itself twice, it says the same.

From 2026-07-28 on the method, the name and marked arguments stand in headers too, so that a router need not read the
body. Whoever reads the body holds the two together: else one could be routed by one value and served by another. No
I/O, no state; where headers come from is the edge's business.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from assay.base.meta import REVISION_KEY, named_revision
from assay.base.verdict import Violation
from assay.contracts.header_arguments import ParamHeader, ParamHeaders
from assay.engine.pointers import escaped
from assay.engine.wording import shown
from assay.rules import violation
from assay.spec.methods import methods
from assay.spec.revisions import LATEST, REVISIONS, handshake

Headers = Mapping[bytes, bytes | tuple[bytes, ...]]
"""Names in lower case, each with its value; one that was sent more than once, with all of them in a tuple."""

_VERSION: Final = b"mcp-protocol-version"
_METHOD: Final = b"mcp-method"
_NAME: Final = b"mcp-name"
_SHOWN: Final = {_VERSION: "MCP-Protocol-Version", _METHOD: "Mcp-Method", _NAME: "Mcp-Name"}

# The tasks extension (io.modelcontextprotocol/tasks, Streamable HTTP) has Mcp-Name as well.
_TASKS: Final = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", **_TASKS}
"""The member of params that Mcp-Name repeats. On other methods it is not judged: other extensions may use it."""

_REVISION_AT: Final = f"/params/_meta/{escaped(REVISION_KEY)}"

# As they stand in a header, in the revisions that have these rules.
_REVISION_BYTES: Final = {each: each.encode() for each in REVISIONS if not handshake(each)}
_METHOD_BYTES: Final = {name: name.encode() for each in _REVISION_BYTES for name in methods(each)}

_SAFE: Final = (1 << 53) - 1
"""The largest integer that every reader of JSON has exactly; the specification lets headers carry none beyond it."""


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_PREFIX_BYTES: Final = _PREFIX.encode()
_SUFFIX_BYTES: Final = _SUFFIX.encode()
_MARKED: Final = len(_PREFIX) + len(_SUFFIX)
_WHITE_SPACE: Final = b" \t"
_VISIBLE: Final = bytes([0x09, *range(0x20, 0x7F)])


def encode(value: str) -> bytes:
    """
    *value* as it stands in a header: as it is, or in Base64 where a header could not carry it, or not unharmed.

    An empty value is encoded too, although a header may be empty: some libraries drop such headers.
    """
    if (
        value.isascii()
        and value.isprintable()
        and value
        and value[0] != " "
        and value[-1] != " "
        and not (value[0] == "=" and value.startswith(_PREFIX) and value.endswith(_SUFFIX))
    ):
        return value.encode()
    # Half a surrogate pair, which no frame that was read contains, becomes something that cannot be decoded.
    return _PREFIX_BYTES + b2a_base64(value.encode("utf-8", "surrogatepass"), newline=False) + _SUFFIX_BYTES


def decode(value: bytes) -> str | None:
    """
    What a header says, or None if it is spelt as no header may be. White space around it does not count (RFC 9110).

    Base64 counts only as `encode` writes it: of two spellings of one value a router might know but one.
    """
    value = value.strip(_WHITE_SPACE)
    if not value.startswith(_PREFIX_BYTES) or not value.endswith(_SUFFIX_BYTES) or len(value) < _MARKED:
        return _text(value)
    inside = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        plain = a2b_base64(inside)
        return plain.decode() if b2a_base64(plain, newline=False) == inside else None
    except (Base64Error, UnicodeDecodeError):
        return None


def _text(value: bytes) -> str | None:
    """A value that is never encoded, without the white space around it; None if it has characters that it must not."""
    return None if value.translate(None, _VISIBLE) else value.strip(_WHITE_SPACE).decode()


def _spelt(value: Any) -> bytes | None:
    """An argument as a header has it in the one spelling that is expected; None if there is none, or more than one."""
    if type(value) is str:
        return encode(value)
    if type(value) is bool:
        return b"true" if value else b"false"
    return b"%d" % value if type(value) is int and -_SAFE <= value <= _SAFE else None


def _equal(text: str, value: str | int) -> bool:
    """Whether *text*, from a header, is the *value* of the body."""
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    whole, dot, fraction = text.partition(".")
    digits = whole.removeprefix("-")
    # 42.0 is 42. Exponents are no decimal notation; 40 digits are more than any integer that may be sent has.
    plain = text.isascii() and digits.isdigit() and len(digits) <= 40 and fraction.isdigit() == bool(dot)
    return plain and not fraction.strip("0") and int(whole) == value


# ── a request ────────────────────────────────────────────────────────────────────────────────────────────────────────


def keeps_headers(message: dict[str, Any], headers: Headers, revision: str, params: ParamHeaders = ()) -> bool:
    """
    Whether a request plainly keeps the rules, every header in its usual spelling. No means: `check_headers` decides.

    About 0.5 µs: nothing is decoded.
    """
    try:
        method = message["method"]
        asked = message["params"]
        if headers[_VERSION] != _REVISION_BYTES[revision] or asked["_meta"][REVISION_KEY] != revision:
            return False
        if headers[_METHOD] != _METHOD_BYTES[method]:
            return False
        if method in NAMED and headers[_NAME] != encode(asked[NAMED[method]]):
            return False
        if not params or method != "tools/call":
            return True
        return _keeps_params(asked.get("arguments"), headers, params)
    except (KeyError, TypeError, AttributeError):
        # What is not there, or not what it should be.
        return False


def _keeps_params(arguments: Any, headers: Headers, params: ParamHeaders) -> bool:
    for field, _, path in params:
        value = _value(arguments, path)
        sent = headers.get(field)
        if sent != _spelt(value) or (sent is None and value is not None):
            return False
    return True


def check_headers(
    message: dict[str, Any], headers: Headers, revision: str, params: ParamHeaders | None = None
) -> Iterator[Violation]:
    """
    What is wrong with the headers that a client's request or notification of *revision* came with.

    *params* are those of the tool that is called, if it is known. Before 2026-07-28 only the revision is looked at.
    What headers a notification has is left open by the specification: those that are there must be right.
    """
    if keeps_headers(message, headers, revision, params or ()):
        return
    is_request = "id" in message
    modern = not handshake(revision)
    if is_request or _VERSION in headers:
        wrong = check_version(message, headers)
        if wrong is None and modern and _VERSION not in headers:
            wrong = _missing(_SHOWN[_VERSION], _REVISION_AT, revision)
        if wrong is not None:
            yield wrong
    if modern and (is_request or _METHOD in headers):
        yield from _check_value(_METHOD, message["method"], "/method", headers, revision)
    if modern and is_request:
        yield from _check_named(message, headers, revision, params or ())


def check_version(message: dict[str, Any], headers: Headers) -> Violation | None:
    """
    What is wrong with the revision that a request names in its header, in its body, or in both.

    Both must be there from 2026-07-28 on, and agree. That comes first: of two revisions nobody can say which one is
    not known. In the older revisions the body says nothing of it, and a request without the header is good.
    """
    sent = headers.get(_VERSION)
    named = named_revision(message)
    shown_as = _SHOWN[_VERSION]
    if sent is None:
        return None if named is None or _has_handshake(named) else _missing(shown_as, _REVISION_AT, LATEST)
    if isinstance(sent, tuple):
        return _repeated(shown_as, _REVISION_AT, len(sent), LATEST)
    told = _text(sent)
    if told is None:
        return _misspelt(shown_as, _REVISION_AT, sent, LATEST, encoded=False)
    if named is not None and named != told and not (_has_handshake(named) and _has_handshake(told)):
        return _different(shown_as, _REVISION_AT, named, told, LATEST)
    return None if told in REVISIONS else _unsupported(told)


def _check_named(message: dict[str, Any], headers: Headers, revision: str, params: ParamHeaders) -> Iterator[Violation]:
    """Mcp-Name, and what repeats arguments. What is missing from the body is not asked of the headers: others tell."""
    asked = message.get("params")
    member = NAMED.get(message["method"])
    if member is None or not isinstance(asked, dict):
        return
    if message["method"] in _TASKS and _NAME not in headers:
        # Servers of the core protocol do not ask for it, and work without: one that does can refuse it.
        return
    if isinstance(asked.get(member), str):
        yield from _check_value(_NAME, asked[member], f"/params/{member}", headers, revision)
    if message["method"] == "tools/call":
        for param in params:
            yield from _check_param(param, asked.get("arguments"), headers, revision)


def _check_param(param: ParamHeader, arguments: Any, headers: Headers, revision: str) -> Iterator[Violation]:
    value = _value(arguments, param.path)
    at = "/params/arguments" + "".join(f"/{escaped(key)}" for key in param.path)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not -_SAFE <= value <= _SAFE:
        yield _beyond(param.name, at, value, revision)
    elif isinstance(value, str | int):
        yield from _check_value(param.field, value, at, headers, revision, param.name)
    elif param.field in headers:
        # The specification says of null and absent values: not to be sent, not to be expected. One that is there all
        # the same would be routed by, and the body has nothing of it; so it disagrees. Arrays, objects and fractions
        # break the tool's schema, and no header could repeat them.
        yield _unwanted(param.name, at, headers[param.field], revision)


def _check_value(
    field: bytes, value: str | int, at: str, headers: Headers, revision: str, name: str = ""
) -> Iterator[Violation]:
    """One header that has to be there, and to say *value*."""
    name = name or _SHOWN[field]
    sent = headers.get(field)
    if sent is None:
        yield _missing(name, at, revision)
    elif isinstance(sent, tuple):
        yield _repeated(name, at, len(sent), revision)
    else:
        encoded = field != _METHOD
        text = decode(sent) if encoded else _text(sent)
        if text is None:
            yield _misspelt(name, at, sent, revision, encoded=encoded)
        elif not _equal(text, value):
            yield _different(name, at, value, text, revision)


def _value(arguments: Any, path: tuple[str, ...]) -> Any:
    """The argument that *path* leads to; None, like null, if there is none."""
    value = arguments
    for key in path:
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value


def _has_handshake(revision: str) -> bool:
    return revision in REVISIONS and handshake(revision)


# ── violations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _missing(name: str, at: str, revision: str) -> Violation:
    expected = f"the header {name[:60]}"
    return violation("protocol/header-missing", at, expected=expected, found="no such header", revision=revision)


def _different(name: str, at: str, value: str | int, text: str, revision: str) -> Violation:
    expected = f"the header {name[:60]} to say {shown(value)}, as the body does"
    return violation("protocol/header-mismatch", at, expected=expected, found=shown(text), revision=revision)


def _repeated(name: str, at: str, times: int, revision: str) -> Violation:
    return violation(
        "protocol/header-mismatch",
        at,
        expected=f"the header {name[:60]} once",
        found=f"{times} of them",
        revision=revision,
        hint="Send the header once: some software reads the first of several, some the last.",
    )


def _unwanted(name: str, at: str, sent: bytes | tuple[bytes, ...], revision: str) -> Violation:
    return violation(
        "protocol/header-mismatch",
        at,
        expected=f"no header {name[:60]}, since the body has no such string, integer or boolean",
        found=f"{len(sent)} of them" if isinstance(sent, tuple) else shown(_readable(sent)),
        revision=revision,
        hint="Omit the header if the argument is null or absent.",
    )


def _misspelt(name: str, at: str, sent: bytes, revision: str, *, encoded: bool) -> Violation:
    forms = "visible ASCII, or UTF-8 as =?base64?…?=" if encoded else "visible ASCII"
    return violation(
        "protocol/header-encoding",
        at,
        expected=f"the header {name[:60]} in {forms}",
        found=shown(_readable(sent)),
        revision=revision,
    )


def _beyond(name: str, at: str, value: int, revision: str) -> Violation:
    return violation(
        "protocol/header-encoding",
        at,
        expected=f"an integer that the header {name[:60]} can carry: at most 2^53-1, either sign",
        found=shown(value),
        revision=revision,
        hint="Send larger numbers as strings, and declare them as strings in the tool's schema.",
    )


def _unsupported(told: str) -> Violation:
    """The very violation that a body with this revision gets: where both name it, it is one."""
    return violation(
        "protocol/unsupported-revision",
        _REVISION_AT,
        expected=f"one of {', '.join(REVISIONS)}",
        found=f'"{told[:40]}"',
        revision=LATEST,
    )


def _readable(sent: bytes) -> str:
    """The beginning of a header that may hold anything."""
    return sent[:100].decode("latin-1")
