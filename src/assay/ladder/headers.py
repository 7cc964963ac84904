"""
The MCP headers of Streamable HTTP, part of the fourth rung: they repeat values of the body, and must agree with it.

From 2026-07-28 on the method, the name and marked arguments are in headers too, so that a router need not parse the
body. The receiver has to compare the two: otherwise a request could be routed by one value and served by another. No
I/O, no state; the edge supplies the headers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from assay.base.meta import REVISION_KEY, named_revision
from assay.base.verdict import Violation
from assay.contracts.header_arguments import ParamHeader, ParamHeaders
from assay.engine.pointers import escaped
from assay.engine.wording import shown
from assay.ladder.header_values import (
    SAFE,
    argument_at,
    argument_text,
    decode,
    encode,
    header_text,
    is_equal,
    plain_text,
)
from assay.rules import violation
from assay.spec.methods import methods
from assay.spec.revisions import LATEST, REVISIONS, handshake, is_known

Pairs = list[tuple[bytes, bytes]]

Headers = Mapping[bytes, bytes | tuple[bytes, ...]]
"""The values by name in lower case; a header that was sent more than once has a tuple of all values."""

VERSION: Final = b"mcp-protocol-version"
_METHOD: Final = b"mcp-method"
_NAME: Final = b"mcp-name"
_SHOWN: Final = {VERSION: "MCP-Protocol-Version", _METHOD: "Mcp-Method", _NAME: "Mcp-Name"}

# The tasks extension (io.modelcontextprotocol/tasks, Streamable HTTP) has Mcp-Name as well.
_TASKS: Final = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", **_TASKS}
"""The member of params that Mcp-Name repeats. It is not judged on other methods: other extensions may use it."""

_REVISION_AT: Final = f"/params/_meta/{escaped(REVISION_KEY)}"

# The values in a header, for the revisions that have these rules.
_REVISION_BYTES: Final = {each: each.encode() for each in REVISIONS if not handshake(each)}
_METHOD_BYTES: Final = {name: name.encode() for each in _REVISION_BYTES for name in methods(each)}


# ── checking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def keeps_headers(message: dict[str, Any], headers: Headers, revision: str, params: ParamHeaders = ()) -> bool:
    """
    Return whether a request certainly follows the rules, with every header in its usual spelling; else `check_headers`
    decides.

    About 0.5 µs: nothing is decoded.
    """
    try:
        method = message["method"]
        asked = message["params"]
        if headers[VERSION] != _REVISION_BYTES[revision] or asked["_meta"][REVISION_KEY] != revision:
            return False
        if headers[_METHOD] != _METHOD_BYTES[method]:
            return False
        if method in NAMED and headers[_NAME] != encode(asked[NAMED[method]]):
            return False
        if not params or method != "tools/call":
            return True
        return _keeps_params(asked.get("arguments"), headers, params)
    except (KeyError, TypeError, AttributeError):
        # A member is missing, or has another type.
        return False


def _keeps_params(arguments: Any, headers: Headers, params: ParamHeaders) -> bool:
    for field, _, path in params:
        value = argument_at(arguments, path)
        sent = headers.get(field)
        if sent != argument_text(value) or (sent is None and value is not None):
            return False
    return True


def check_headers(
    message: dict[str, Any],
    headers: Headers,
    revision: str,
    params: ParamHeaders | None = None,
    *,
    named: bool = True,
) -> Iterator[Violation]:
    """
    Yield the violations of the headers of a client's request or notification of *revision*.

    *params* are those of the tool that is called, if it is known. *named* is false if it is unknown what the headers
    repeat of the params. Before 2026-07-28 only the revision is checked. The
    specification does not say which headers a notification has: those that are there must be right.
    """
    if keeps_headers(message, headers, revision, params or ()):
        return
    is_request = "id" in message
    modern = not handshake(revision)
    if is_request or VERSION in headers:
        wrong = check_version(message, headers)
        if wrong is None and modern and VERSION not in headers:
            wrong = _missing(_SHOWN[VERSION], _REVISION_AT, revision)
        if wrong is not None:
            yield wrong
    if modern and (is_request or _METHOD in headers):
        yield from _check_value(_METHOD, message["method"], "/method", headers, revision)
    if modern and is_request and named:
        yield from _check_named(message, headers, revision, params or ())


def check_version(message: dict[str, Any], headers: Headers) -> Violation | None:
    """
    Return the violation of the revision that a request names in its header, in its body, or in both.

    From 2026-07-28 on both must be there, and agree. That is checked first: if two revisions differ, it is unclear
    which one is unsupported. In older revisions the body has no revision, and the header may be missing.
    """
    sent = headers.get(VERSION)
    named = named_revision(message)
    shown_as = _SHOWN[VERSION]
    if sent is None:
        return None if named is None or _has_handshake(named) else _missing(shown_as, _REVISION_AT, LATEST)
    if isinstance(sent, tuple):
        return _repeated(shown_as, _REVISION_AT, len(sent), LATEST)
    header = plain_text(sent)
    if header is None:
        return _misspelt(shown_as, _REVISION_AT, sent, LATEST, encoded=False)
    if named is not None and named != header and not (_has_handshake(named) and _has_handshake(header)):
        return _different(shown_as, _REVISION_AT, named, header, LATEST)
    return None if is_known(header) else _unsupported(header)


def _check_named(message: dict[str, Any], headers: Headers, revision: str, params: ParamHeaders) -> Iterator[Violation]:
    """Yield the violations of Mcp-Name and of repeated arguments. A member that the body lacks is judged elsewhere."""
    asked = message.get("params")
    member = NAMED.get(message["method"])
    if member is None or not isinstance(asked, dict):
        return
    if isinstance(asked.get(member), str):
        yield from _check_value(_NAME, asked[member], f"/params/{member}", headers, revision)
    if message["method"] == "tools/call":
        for param in params:
            yield from _check_param(param, asked.get("arguments"), headers, revision)


def _check_param(param: ParamHeader, arguments: Any, headers: Headers, revision: str) -> Iterator[Violation]:
    value = argument_at(arguments, param.path)
    at = "/params/arguments" + "".join(f"/{escaped(key)}" for key in param.path)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not -SAFE <= value <= SAFE:
        yield _beyond(param.name, at, value, revision)
    elif isinstance(value, str | int):
        yield from _check_value(param.field, value, at, headers, revision, param.name)
    elif param.field in headers:
        # By the specification null and absent values are not sent, and not expected. A router would use such a header,
        # and the body has no such value; so the two disagree. Arrays, objects and fractions break the schema of the
        # tool, and no header could repeat them.
        yield _unwanted(param.name, at, headers[param.field], revision)


def _check_value(
    field: bytes, value: str | int, at: str, headers: Headers, revision: str, name: str = ""
) -> Iterator[Violation]:
    """Yield the violation of one header that must have *value*."""
    name = name or _SHOWN[field]
    sent = headers.get(field)
    if sent is None:
        yield _missing(name, at, revision)
    elif isinstance(sent, tuple):
        yield _repeated(name, at, len(sent), revision)
    else:
        encoded = field != _METHOD
        text = decode(sent) if encoded else plain_text(sent)
        if text is None:
            yield _misspelt(name, at, sent, revision, encoded=encoded)
        elif not is_equal(text, value):
            yield _different(name, at, value, text, revision)


def _has_handshake(revision: str) -> bool:
    return is_known(revision) and handshake(revision)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_stateless(message: Any, revision: str | None) -> bool:
    """Return whether *message*, judged by *revision*, belongs to a revision without a handshake."""
    named = _named(message)
    if named is not None and message.get("method") != "initialize":
        return not is_known(named) or not handshake(named)
    return revision is not None and not handshake(revision)


def stateless_headers(message: dict[str, Any], params: ParamHeaders = ()) -> Pairs:
    """
    Return the headers that a request or notification of 2026-07-28 needs; *params* are those of the tool that it calls.

    A value that no header can carry (an integer beyond 2^53, a method that is not visible ASCII) is left out, so that
    the receiver reports it.
    """
    method = message.get("method")
    version = header_text(_named(message) or LATEST)
    pairs: Pairs = [] if version is None else [(VERSION, version)]
    if isinstance(method, str) and (text := header_text(method)) is not None:
        pairs.append((_METHOD, text))
    asked = message.get("params")
    member = NAMED.get(method) if isinstance(method, str) else None
    if member is None or not isinstance(asked, dict):
        return pairs
    if isinstance(asked.get(member), str):
        pairs.append((_NAME, encode(asked[member])))
    if method == "tools/call":
        found = ((each.name.encode(), argument_text(argument_at(asked.get("arguments"), each.path))) for each in params)
        pairs += [(name, value) for name, value in found if value is not None]
    return pairs


def _named(message: Any) -> str | None:
    asked = message.get("params") if isinstance(message, dict) else None
    return named_revision(message) if isinstance(asked, dict) else None


# ── violations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _missing(name: str, at: str, revision: str) -> Violation:
    expected = f"the header {name[:60]}"
    return violation("protocol/header-missing", at, expected=expected, found="no such header", revision=revision)


def _different(name: str, at: str, value: str | int, text: str, revision: str) -> Violation:
    expected = f"{shown(value)} in the header {name[:60]}"
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
        expected=f"no header {name[:60]}, because the body has no string, integer or boolean for it",
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
        expected=f"an integer from -(2^53-1) to 2^53-1 in the header {name[:60]}",
        found=shown(value),
        revision=revision,
        hint="Send larger numbers as strings, and declare them as strings in the tool's schema.",
    )


def _unsupported(header: str) -> Violation:
    """Return the same violation as for a body with this revision: if both name it, there is one."""
    return violation(
        "protocol/unsupported-revision",
        _REVISION_AT,
        expected=f"one of {', '.join(REVISIONS)}",
        found=f'"{header[:40]}"',
        revision=LATEST,
    )


def _readable(sent: bytes) -> str:
    """Return the start of a header, which may contain anything."""
    return sent[:100].decode("latin-1")
