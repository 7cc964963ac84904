"""Definitions that are written out, whatever the revision: a source of definitions beside `assay.spec.notation`."""

from assay.spec.notation import Schema


class WrittenFacts:
    """Has the same definitions in every revision: the number of a revision has no meaning here."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions

    def definitions(self, _: int) -> list[str]:
        """Return the names of the definitions, sorted."""
        return sorted(self._definitions)

    def defines(self, name: str, _: int) -> bool:
        """Whether *name* is defined."""
        return name in self._definitions

    def read(self, name: str, _: int) -> Schema:
        """Return the JSON Schema of *name*; an unknown name is a KeyError. It is shared: do not change it."""
        return self._definitions[name]
