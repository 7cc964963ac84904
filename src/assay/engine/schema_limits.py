"""How much of a schema from outside we take on, and what we say of one we do not. No judging here."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """What a schema from outside may ask of us. The engine has no step limit, so all of it is known beforehand."""

    size: int = 256 * 1024
    """Bytes of compact JSON. The largest official protocol schema has 109 kB."""
    levels: int = 64
    """Nesting of the schema itself. Ours: the engine compiles by recursion, and so do others who read it."""
    subschemas: int = 5_000
    """Places where a schema stands. The official protocol schema has 918."""
    chain: int = 64
    """Subschemas entered one after another at one place of an instance: each is a stack frame of the engine, and its
    stack overflows with a segmentation fault. The official schema needs 4."""
    cost: int = 50_000
    """Subschemas that judge one value of an instance. The official schemas need up to 81; schemas that stall the engine
    need more than 6×10⁷."""
    patterns: int = 32 << 20
    """Bytes that all compiled regular expressions together may take: 500 of ``^.{0,1000}`` took 645 MB and 4.5 s."""


@dataclass(frozen=True, slots=True)
class SchemaRefusal:
    """Why a schema is not judged by."""

    rule: str
    at: str
    """JSON Pointer into the schema."""
    expected: str
    found: str
    effort: int = field(default=0, compare=False)
    """Entries looked at to find that out, where that was what it took: for whoever has to account for it."""
