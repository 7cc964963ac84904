"""JSON Pointers (RFC 6901), plain for instances and as URI fragments for schemas. Knows nothing of either."""

from typing import Any

# RFC 3986, fragment: pchar / "/" / "?". Everything else is percent-encoded, as the engine's own resolver expects.
_IN_FRAGMENT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/?")


class Nowhere:
    """The type of `NOWHERE`: what a pointer that leads nowhere gives, since null is a value."""

    __slots__ = ()


NOWHERE = Nowhere()


def escaped(token: str) -> str:
    """*token* as one step of a JSON Pointer."""
    if "~" in token or "/" in token:
        return token.replace("~", "~0").replace("/", "~1")
    return token


def steps(pointer: str) -> list[str]:
    """The tokens of *pointer*, unescaped; none for the whole document."""
    if not pointer:
        return []
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def as_fragment(pointer: str) -> str:
    """*pointer* as a URI fragment, with its number sign."""
    if _IN_FRAGMENT.issuperset(pointer):
        return "#" + pointer
    return "#" + "".join(char if char in _IN_FRAGMENT else _percent(char) for char in pointer)


def from_fragment(fragment: str) -> str | None:
    """What a URI fragment (without its number sign) spells, or None where the percent-encoding is broken."""
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
    """The value *pointer* leads to in *document*, or `NOWHERE`."""
    if pointer and not pointer.startswith("/"):
        return NOWHERE
    value = document
    for token in steps(pointer):
        value = step_into(value, token)
        if value is NOWHERE:
            return NOWHERE
    return value


def step_into(value: Any, token: str) -> Any:
    """The member or item of *value* that *token* names, or `NOWHERE`."""
    if isinstance(value, dict):
        return value.get(token, NOWHERE)
    # RFC 6901, section 4: no leading zeros; `isdecimal` alone would also take other scripts' digits.
    if isinstance(value, list) and token.isascii() and token.isdecimal() and len(token) < 10:
        index = int(token)
        return value[index] if index < len(value) and str(index) == token else NOWHERE
    return NOWHERE


_HEX = frozenset("0123456789abcdefABCDEF")


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
