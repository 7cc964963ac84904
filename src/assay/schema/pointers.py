"""JSON Pointers (RFC 6901): plain for instances, and as URI fragments for schemas."""

from typing import Any

# RFC 3986, fragment: pchar / "/" / "?". Everything else is percent-encoded, as the engine's resolver expects.
_IN_FRAGMENT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/?")


class Nowhere:
    """The type of `NOWHERE`, which stands for a missing value, since null is a value."""

    __slots__ = ()


NOWHERE = Nowhere()


def escaped(token: str) -> str:
    """Return *token* as one step of a JSON Pointer."""
    if "~" in token or "/" in token:
        return token.replace("~", "~0").replace("/", "~1")
    return token


def steps(pointer: str) -> list[str]:
    """Return the tokens of *pointer*, unescaped; [] for the whole document."""
    if not pointer:
        return []
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def as_fragment(pointer: str) -> str:
    """Return *pointer* as a URI fragment, with its number sign."""
    if _IN_FRAGMENT.issuperset(pointer):
        return "#" + pointer
    return "#" + "".join(char if char in _IN_FRAGMENT else _percent(char) for char in pointer)


def from_fragment(fragment: str) -> str | None:
    """Return a URI fragment (without its number sign) decoded, or None if its percent-encoding is invalid."""
    if "%" not in fragment:
        return fragment
    head, *rest = fragment.split("%")
    raw = bytearray(head.encode("utf-8", "surrogatepass"))
    for part in rest:
        if len(part) < 2 or part[0] not in _HEX or part[1] not in _HEX:
            return None
        raw.append(int(part[:2], 16))
        raw += part[2:].encode("utf-8", "surrogatepass")
    return raw.decode("utf-8", "replace")


def looked_up(document: Any, pointer: str) -> Any:
    """Return the value at *pointer* in *document*, or `NOWHERE`."""
    if pointer and not pointer.startswith("/"):
        return NOWHERE
    value = document
    for token in steps(pointer):
        value = step_into(value, token)
        if value is NOWHERE:
            return NOWHERE
    return value


def step_into(value: Any, token: str) -> Any:
    """Return the member or item of *value* with the name or number *token*, or `NOWHERE`."""
    if isinstance(value, dict):
        return value.get(token, NOWHERE)
    # RFC 6901, section 4: no leading zeros; `isdecimal` alone also accepts the digits of other scripts.
    if isinstance(value, list) and token.isascii() and token.isdecimal() and len(token) < 10:
        index = int(token)
        return value[index] if index < len(value) and str(index) == token else NOWHERE
    return NOWHERE


_HEX = frozenset("0123456789abcdefABCDEF")


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
