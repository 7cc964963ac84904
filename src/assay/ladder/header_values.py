"""The values of MCP headers: how text and arguments are written in them, and read back. No I/O, no state."""

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from typing import Any, Final

SAFE: Final = (1 << 53) - 1
"""The largest integer that every reader of JSON has exactly; by the specification headers carry no larger ones."""

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_PREFIX_BYTES: Final = _PREFIX.encode()
_SUFFIX_BYTES: Final = _SUFFIX.encode()
_MARKED: Final = len(_PREFIX) + len(_SUFFIX)
_WHITE_SPACE: Final = b" \t"
_VISIBLE: Final = bytes([0x09, *range(0x20, 0x7F)])


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
        return plain_text(value)
    inside = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        plain = a2b_base64(inside)
        return plain.decode() if b2a_base64(plain, newline=False) == inside else None
    except (Base64Error, UnicodeDecodeError):
        return None


def plain_text(value: bytes) -> str | None:
    """Return a value that is never encoded, without white space around it; None if it has other characters."""
    return None if value.translate(None, _VISIBLE) else value.strip(_WHITE_SPACE).decode()


def header_text(text: str) -> bytes | None:
    """Return *text* for a header that is never encoded; None if a header would not carry it unchanged."""
    return text.encode() if text.isascii() and text.isprintable() and text and text.strip(" ") == text else None


def argument_text(value: Any) -> bytes | None:
    """Return an argument for a header; None if it must not be sent, or cannot be."""
    if type(value) is str:
        return encode(value)
    if type(value) is bool:
        return b"true" if value else b"false"
    if type(value) is float and value.is_integer():
        value = int(value)
    return b"%d" % value if type(value) is int and -SAFE <= value <= SAFE else None


def is_equal(text: str, value: str | int) -> bool:
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


def argument_at(arguments: Any, path: tuple[str, ...]) -> Any:
    """Return the argument at *path*; None, as for null, if it is absent."""
    value = arguments
    for key in path:
        if type(value) is not dict:
            return None
        value = value.get(key)
    return value
