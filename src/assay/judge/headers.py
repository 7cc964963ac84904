"""
The MCP headers of Streamable HTTP, part of the fourth rung: they repeat values of the body, and must agree with it.

From 2026-07-28 on the method, the name and marked arguments are in headers too, so that a router need not parse the
body. The receiver has to compare the two: otherwise a request could be routed by one value and served by another. No
I/O, no state; the edge supplies the headers.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from assay.model.json_values import REVISION_KEY, named_revision
from assay.model.verdict import Violation
from assay.rules import violation
from assay.schema.header_arguments import ParamHeaders
from assay.schema.pointers import escaped
from assay.schema.wording import shown
from assay.spec.methods import methods
from assay.spec.revisions import LATEST, REVISIONS, handshake, is_known

Pairs = list[tuple[bytes, bytes]]

Headers = Mapping[bytes, bytes | tuple[bytes, ...]]
"""The values by name in lower case; a header that was sent more than once has a tuple of all values."""

VERSION: Final = b"mcp-protocol-version"
_METHOD: Final = b"mcp-method"
_NAME: Final = b"mcp-name"

# The tasks extension (io.modelcontextprotocol/tasks, Streamable HTTP) has Mcp-Name as well.
_TASKS: Final = {"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}

NAMED: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", **_TASKS}
"""The member of params that Mcp-Name repeats. It is not judged on other methods: other extensions may use it."""

# The values in a header, for the revisions that have these rules.
_REVISION_BYTES: Final = {each: each.encode() for each in REVISIONS if not handshake(each)}
_METHOD_BYTES: Final = {name: name.encode() for each in _REVISION_BYTES for name in methods(each)}

_SAFE: Final = (1 << 53) - 1
"""The largest integer that every reader of JSON has exactly; by the specification headers carry no larger ones."""

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_PREFIX_BYTES: Final = _PREFIX.encode()
_SUFFIX_BYTES: Final = _SUFFIX.encode()
_MARKED: Final = len(_PREFIX) + len(_SUFFIX)
_WHITE_SPACE: Final = b" \t"
_VISIBLE: Final = bytes([0x09, *range(0x20, 0x7F)])


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
        value = _argument_at(arguments, path)
        sent = headers.get(field)
        if sent != _argument_text(value) or (sent is None and value is not None):
            return False
    return True


class _Repeated(NamedTuple):
    """A value of the body that a header repeats."""

    field: bytes
    name: str
    """The name of the header as it is shown."""
    path: tuple[str, ...]
    """The keys that lead to the value."""
    value: Any
    revision: str

    @property
    def at(self) -> str:
        """The JSON Pointer to the value."""
        return "".join(f"/{escaped(key)}" for key in self.path)

    @property
    def header(self) -> str:
        """The header, in words."""
        return f"header {self.name[:60]}"

    def wrong(self, kind: str, expected: str, found: str, hint: str | None = None) -> Violation:
        """Return a violation of the rule about *kind*."""
        rule = f"protocol/header-{kind}"
        return violation(rule, self.at, expected=expected, found=found, revision=self.revision, hint=hint)

    def missing(self) -> Violation:
        """Return the violation of a header that is not there."""
        return self.wrong("missing", f"the {self.header}", "no such header")

    def different(self, text: str) -> Violation:
        """Return the violation of a header that has *text*."""
        return self.wrong("mismatch", f"{shown(self.value)} in the {self.header}", shown(text))

    def read(self, sent: bytes | tuple[bytes, ...]) -> str | Violation:
        """Return the text of the header that was *sent*, or the violation if it has none."""
        if isinstance(sent, tuple):
            hint = "Send the header once: some software reads the first of several, some the last."
            return self.wrong("mismatch", f"the {self.header} once", f"{len(sent)} of them", hint)
        if self.field in {VERSION, _METHOD}:
            text, forms = _plain_text(sent), "visible ASCII"
        else:
            text, forms = decode(sent), "visible ASCII, or UTF-8 as =?base64?…?="
        return self.wrong("encoding", f"the {self.header} in {forms}", _start(sent)) if text is None else text

    def check(self, sent: bytes | tuple[bytes, ...] | None) -> Violation | None:
        """Return the violation of the header that was *sent*."""
        value = self.value
        if isinstance(value, int) and not -_SAFE <= value <= _SAFE:
            expected = f"an integer from -(2^53-1) to 2^53-1 in the {self.header}"
            hint = "Send larger numbers as strings, and declare them as strings in the tool's schema."
            return self.wrong("encoding", expected, shown(value), hint)
        if not isinstance(value, str | int):
            if sent is None:
                return None
            # By the specification null and absent values are not sent, and not expected. A router would use such a
            # header, and the body has no such value; so the two disagree. Arrays, objects and fractions break the
            # schema of the tool, and no header could repeat them.
            expected = f"no {self.header}, because the body has no string, integer or boolean for it"
            found = f"{len(sent)} of them" if isinstance(sent, tuple) else _start(sent)
            return self.wrong("mismatch", expected, found, "Omit the header if the argument is null or absent.")
        if sent is None:
            return self.missing()
        text = self.read(sent)
        if isinstance(text, Violation):
            return text
        return None if _is_equal(text, value) else self.different(text)


def check_headers(
    message: dict[str, Any],
    headers: Headers,
    revision: str,
    params: ParamHeaders = (),
    *,
    named: bool = True,
) -> Iterator[Violation]:
    """
    Yield the violations of the headers of a client's request or notification of *revision*.

    *params* are those of the tool that is called, if it is known. *named* is false if it is unknown what the headers
    repeat of the params. Before 2026-07-28 only the revision is checked. The specification does not say which headers
    a notification has: those that are there must be right.
    """
    if keeps_headers(message, headers, revision, params):
        return
    is_request = "id" in message
    modern = not handshake(revision)
    if is_request or VERSION in headers:
        wrong = check_version(message, headers, required=modern)
        if wrong is not None:
            yield wrong
    if not modern:
        return
    for each in _repeated(message, revision, params):
        is_method = each.field == _METHOD
        judged = (is_request and (named or is_method)) or (is_method and _METHOD in headers)
        wrong = each.check(headers.get(each.field)) if judged else None
        if wrong is not None:
            yield wrong


def check_version(message: dict[str, Any], headers: Headers, *, required: bool = False) -> Violation | None:
    """
    Return the violation of the revision that a request names in its header, in its body, or in both.

    From 2026-07-28 on both must be there, and agree. That is checked first: if two revisions differ, it is unclear
    which one is unsupported. In older revisions the body has no revision, and the header may be missing unless it is
    *required*.
    """
    named = named_revision(message)
    version = _Repeated(VERSION, "MCP-Protocol-Version", ("params", "_meta", REVISION_KEY), named, LATEST)
    if VERSION not in headers:
        required = required or (named is not None and not _has_handshake(named))
        return version.missing() if required else None
    header = version.read(headers[VERSION])
    if isinstance(header, Violation):
        return header
    if named is not None and named != header and not (_has_handshake(named) and _has_handshake(header)):
        return version.different(header)
    if is_known(header):
        return None
    # The same violation as for a body with this revision: if both name it, there is one.
    return violation(
        "protocol/unsupported-revision",
        version.at,
        expected=f"one of {', '.join(REVISIONS)}",
        found=f'"{header[:40]}"',
        revision=LATEST,
    )


def _repeated(message: dict[str, Any], revision: str, params: ParamHeaders) -> Iterator[_Repeated]:
    """Yield what the headers of *message* repeat beside the revision; what the body lacks is judged elsewhere."""
    method = message.get("method")
    if not isinstance(method, str):
        return
    yield _Repeated(_METHOD, "Mcp-Method", ("method",), method, revision)
    asked = message.get("params")
    member = NAMED.get(method)
    if member is None or not isinstance(asked, dict):
        return
    if isinstance(asked.get(member), str):
        yield _Repeated(_NAME, "Mcp-Name", ("params", member), asked[member], revision)
    if method == "tools/call":
        for field, name, path in params:
            value = _argument_at(asked.get("arguments"), path)
            if type(value) is float and value.is_integer():
                value = int(value)
            yield _Repeated(field, name, ("params", "arguments", *path), value, revision)


def _start(sent: bytes) -> str:
    """Return the start of a header, which may contain anything, for a violation."""
    return shown(sent[:100].decode("latin-1"))


def _has_handshake(revision: str) -> bool:
    return is_known(revision) and handshake(revision)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_stateless(message: Any, revision: str | None) -> bool:
    """Return whether *message*, judged by *revision*, belongs to a revision without a handshake."""
    named = named_revision(message) if isinstance(message, dict) else None
    if named is not None and message.get("method") != "initialize":
        return not is_known(named) or not handshake(named)
    return revision is not None and not handshake(revision)


def stateless_headers(message: dict[str, Any], params: ParamHeaders = ()) -> Pairs:
    """
    Return the headers that a request or notification of 2026-07-28 needs; *params* are those of the tool that it calls.

    A value that no header can carry (an integer beyond 2^53, a method that is not visible ASCII) is left out, so that
    the receiver reports it.
    """
    pairs: list[tuple[bytes, bytes | None]] = [(VERSION, header_text(named_revision(message) or LATEST))]
    for field, name, _, value, _ in _repeated(message, LATEST, params):
        if field == _METHOD:
            pairs.append((field, header_text(value)))
        else:
            pairs.append((field if field == _NAME else name.encode(), _argument_text(value)))
    return [(name, text) for name, text in pairs if text is not None]


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def encode(value: str) -> bytes:
    """
    Return *value* for a header: as it is, or in Base64 if a header would not carry it unchanged.

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
    # Half of a surrogate pair, which no accepted frame contains, becomes something that cannot be decoded.
    return _PREFIX_BYTES + b2a_base64(value.encode("utf-8", "surrogatepass"), newline=False) + _SUFFIX_BYTES


def decode(value: bytes) -> str | None:
    """
    Return the value of a header; None if it is malformed. White space around it does not count (RFC 9110).

    Base64 must be as `encode` writes it: a router might know only one of two spellings.
    """
    value = value.strip(_WHITE_SPACE)
    if not value.startswith(_PREFIX_BYTES) or not value.endswith(_SUFFIX_BYTES) or len(value) < _MARKED:
        return _plain_text(value)
    inside = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        plain = a2b_base64(inside)
        return plain.decode() if b2a_base64(plain, newline=False) == inside else None
    except (Base64Error, UnicodeDecodeError):
        return None


def _plain_text(value: bytes) -> str | None:
    """Return a value that is never encoded, without white space around it; None if it has other characters."""
    return None if value.translate(None, _VISIBLE) else value.strip(_WHITE_SPACE).decode()


def header_text(text: str) -> bytes | None:
    """Return *text* for a header that is never encoded; None if a header would not carry it unchanged."""
    return text.encode() if text.isascii() and text.isprintable() and text and text.strip(" ") == text else None


def _argument_text(value: Any) -> bytes | None:
    """Return an argument for a header; None if it must not be sent, or cannot be."""
    if type(value) is str:
        return encode(value)
    if type(value) is bool:
        return b"true" if value else b"false"
    if type(value) is float and value.is_integer():
        value = int(value)
    return b"%d" % value if type(value) is int and -_SAFE <= value <= _SAFE else None


def _is_equal(text: str, value: str | int) -> bool:
    """Return whether *text*, from a header, is the *value* in the body."""
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    whole, dot, fraction = text.partition(".")
    digits = whole.removeprefix("-")
    # 42.0 is 42. Exponents are not allowed; 40 digits are more than any integer that may be sent.
    plain = text.isascii() and digits.isdigit() and len(digits) <= 40 and fraction.isdigit() == bool(dot)
    return plain and not fraction.strip("0") and int(whole) == value


def _argument_at(arguments: Any, path: tuple[str, ...]) -> Any:
    """Return the argument at *path*; None, as for null, if it is absent."""
    value = arguments
    for key in path:
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value
