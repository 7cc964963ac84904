"""What the JSON Schema engine found wrong, before a rung says which of our rules that breaks. No I/O, no rules."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where an instance differs from its schema."""

    at: str
    """JSON Pointer into the instance, "" for the whole of it."""
    keyword: str
    """The schema keyword that refused it: ``type``, ``required``, ``anyOf`` …"""
    expected: str
    """What the schema asks for, in words: ``an integer, at least 1``."""
    found: str
    """What was there, in a few characters; never the whole value."""
    schema_at: str
    """JSON Pointer into the schema document, as a URI fragment: ``#/properties/limit/minimum``."""
    wrong_type: bool = False
    """No value of the JSON type that was found would fit, whatever its content."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults that were listed, and at least how many more there are."""

    listed: tuple[Fault, ...]
    more: int = 0

    def distinct(self) -> list[Fault]:
        """The faults listed, one for each thing that is wrong: two branches may ask for the same in one place."""
        return list({(fault.at, fault.expected): fault for fault in reversed(self.listed)}.values())[::-1]
