"""
Corrections of the official ``schema.json``.

A guard must not block valid traffic, so the corrections apply unless a caller asks for the exact files. A correction is
listed here only if ``schema.ts``, the specification from which the files are generated, differs.
"""

from typing import Final, NamedTuple


class Erratum(NamedTuple):  # not a dataclass: each takes a millisecond to create, at every start-up
    """One place in one definition that is replaced."""

    definition: str
    revisions: tuple[str, ...]
    at: str
    """JSON Pointer to the schema that is replaced, within the definition; "" for all of it."""
    type: str
    """The correct type, in the notation of the facts."""
    reason: str


_FRACTIONS: Final = (
    "schema.ts has `number`, which takes fractions; the generator of schema.json makes every number an integer unless "
    "it is configured otherwise. Answers such as 3.14 are common in the wild."
)

ERRATA: Final = (
    Erratum(
        definition="ElicitResult",
        revisions=("2025-06-18",),
        at="/properties/content/additionalProperties",
        type="str | num | bool",
        reason=_FRACTIONS,
    ),
    Erratum(
        definition="ElicitResult",
        revisions=("2025-11-25", "2026-07-28"),
        at="/properties/content/additionalProperties",
        type="str | num | bool | [str]",
        reason=_FRACTIONS,
    ),
    Erratum(
        definition="JSONValue",
        revisions=("2026-07-28",),
        at="",
        type="JSONObject | JSONArray | str | num | bool | null",
        reason="schema.ts has `string | number | boolean | null` beside objects and arrays; the generator lost two.",
    ),
)


def errata(revision: str, definition: str) -> tuple[Erratum, ...]:
    """Return the corrections of *definition* in *revision*."""
    return tuple(each for each in ERRATA if each.definition == definition and revision in each.revisions)
