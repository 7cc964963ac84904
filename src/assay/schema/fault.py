"""
What is wrong with an instance or with a schema, and the limits for untrusted schemas.

Values only: the rungs decide which of our rules a fault breaks.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One place where an instance differs from its schema."""

    at: str
    """JSON Pointer into the instance, "" for the whole of it."""
    keyword: str
    """The schema keyword that refused it: ``type``, ``required``, ``anyOf`` …"""
    expected: str
    """What the schema asks for: ``an integer of at least 1``."""
    found: str
    """The value in a few characters; never the whole value."""
    schema_at: str
    """JSON Pointer into the schema document, as a URI fragment: ``#/properties/limit/minimum``."""
    wrong_type: bool = False
    """No value of the JSON type that was found would fit, whatever its content."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The listed faults, and at least how many more there are."""

    listed: tuple[Fault, ...]
    more: int = 0

    def distinct(self) -> list[Fault]:
        """Return the listed faults without repetition: two branches may ask for the same in one place."""
        return list({(fault.at, fault.expected): fault for fault in reversed(self.listed)}.values())[::-1]


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """Limits for untrusted schemas. The engine has no step limit, so all of them are checked before compiling."""

    size: int = 256 * 1024
    """Bytes of compact JSON. The largest official protocol schema has 109 kB. Beyond it: ``contract/schema-size``."""

    levels: int = 64
    """
    Nesting of the schema itself, because the engine compiles by recursion. Beyond it: ``contract/schema-size``.
    """

    subschemas: int = 5_000
    """Subschemas in the document. The official protocol schema has 918. Beyond it: ``contract/schema-size``."""

    chain: int = 64
    """
    Subschemas entered one after another at one place of an instance: each is a stack frame of the engine. The official
    schema needs 4. Beyond it: ``contract/schema-cost``.
    """

    cost: int = 50_000
    """
    Subschemas that judge one value of an instance. The official schemas need up to 81; schemas that stall the engine
    need more than 6×10⁷. Beyond it: ``contract/schema-cost``.
    """

    patterns: int = 12 << 20
    """
    Bytes of all compiled regular expressions together: 500 of ``^.{0,1000}`` took 645 MB and 4.5 s. Those of Pydantic
    and zod take a few kilobytes each; ``^.{1,255}$`` takes 255. Beyond it: ``contract/pattern``.
    """


@dataclass(frozen=True, slots=True)
class SchemaRefusal:
    """Why a schema, or a part of it, is not used."""

    rule: str
    at: str
    """JSON Pointer into the schema."""
    expected: str
    found: str
