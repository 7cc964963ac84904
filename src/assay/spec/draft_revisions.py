"""
Draft revisions of the protocol that an operator chose to judge by.

A draft is known only while it is in use. It is never offered to a peer, and never chosen: `REVISIONS` does not have it.
The state is process-wide, because a draft must have one meaning in all of its places, from an HTTP header to a result.
No I/O.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from assay.spec.document_facts import DocumentError, DocumentFacts, alternatives, method_of
from assay.spec.methods import Kind, Method, PartyName, methods
from assay.spec.revisions import DRAFTS, FEATURES, LATEST, LATEST_HANDSHAKE, REVISIONS, Features
from assay.spec.schema import ProtocolSchema, suggestion

_UNIONS: Final[tuple[tuple[str, PartyName, Kind], ...]] = (
    ("ClientRequest", "client", "request"),
    ("ServerRequest", "server", "request"),
    ("ClientNotification", "client", "notification"),
    ("ServerNotification", "server", "notification"),
)
"""The definitions that list the messages of a revision, with the sender and the kind of these messages."""

_ASKS_BACK: Final = "InputRequiredResult"
_OF_TASKS: Final = ("CreateTaskResult", "CallToolResult", "CreateMessageResult", "ElicitResult")
"""The definitions that results of tasks are judged by."""
_OPENS: Final = "initialize"


def is_revision(facts: DocumentFacts) -> bool:
    """Return whether a document defines a whole revision, not an extension of one."""
    return facts.defines("ClientRequest", 0) and facts.defines("JSONRPCRequest", 0)


class DraftRevision:
    """One draft revision, from the document that defines it."""

    def __init__(self, name: str, facts: DocumentFacts) -> None:
        """Raises `DocumentError` if the document does not define a whole revision."""
        self.name = name
        self.facts = facts
        for lacking, user in facts.lacking.items():
            near = suggestion(lacking, facts.definitions(0))
            raise DocumentError(f"{user} refers to {lacking}, which is missing{near}")
        rows = list(_rows(facts))
        if not rows:
            raise DocumentError("ClientRequest lists no request that has a method")
        self.base = LATEST_HANDSHAKE if any(row[0] == _OPENS for row in rows) else LATEST
        """The released revision whose features it has."""
        self.features = _features(facts, FEATURES[self.base])
        self.methods: Mapping[str, Method] = MappingProxyType(self._merged(rows))
        self._schemas: dict[bool, ProtocolSchema] = {}
        needed = ("Result", "InitializeResult") if self.features.handshake else ("Result",)
        for each in needed:
            if not facts.defines(each, 0):
                raise DocumentError(f"a revision needs the definition {each}, which is missing")
        try:
            self.schema().check()
        except ValueError as error:
            raise DocumentError(str(error)) from None

    def schema(self, *, errata: bool = True) -> ProtocolSchema:
        """Return its definitions; with *errata*, without the known mistakes that it has in common with its base."""
        if errata not in self._schemas:
            self._schemas[errata] = ProtocolSchema(self.name, errata=errata, source=self.facts, base=self.base)
        return self._schemas[errata]

    def _merged(self, rows: list[tuple[str, PartyName, Kind, str]]) -> dict[str, Method]:
        """Return the methods by name; one that both parties may send has two rows."""
        found: dict[str, Method] = {}
        for name, sender, kind, definition in rows:
            before = found.get(name)
            senders: tuple[PartyName, ...] = (sender,) if before is None else (*before.senders, sender)
            released = methods(self.base).get(name)
            found[name] = Method(
                name=name,
                kind=kind,
                senders=senders,
                revisions=(self.name,),
                definition=definition,
                result=self._result(definition, released) if kind == "request" else None,
                capability=None if released is None else released.capability,
            )
        return found

    def _result(self, definition: str, released: Method | None) -> str | None:
        """Return the definition of the result that answers the request *definition*; None if the document has none."""
        stem = definition.removesuffix("Request")
        response = f"{stem}ResultResponse"
        if self.facts.defines(response, 0):
            field = self.facts.read(response, 0).get("properties", {}).get("result", {})
            named = [str(each.get("$ref", "")).rpartition("/")[2] for each in (field, *field.get("anyOf", ()))]
            # Asking back is judged by the type of a result.
            final = [each for each in named if each and each != _ASKS_BACK]
            if len(final) == 1:
                return final[0]
        wanted = (None if released is None else released.result, f"{stem}Result", "Result")
        return next((each for each in wanted if each is not None and self.facts.defines(each, 0)), None)


def _rows(facts: DocumentFacts) -> Iterator[tuple[str, PartyName, Kind, str]]:
    """Yield the messages of a revision: the method, its sender, its kind, and its definition."""
    for union, sender, kind in _UNIONS:
        for definition in alternatives(facts, union) if facts.defines(union, 0) else ():
            name = method_of(facts.read(definition, 0))
            if name is not None:
                yield name, sender, kind, definition


def _features(facts: DocumentFacts, base: Features) -> Features:
    """Return the features of *base*, without those whose definitions the document does not have."""
    return base._replace(
        tasks=base.tasks and all(facts.defines(each, 0) for each in _OF_TASKS),
        result_types=base.result_types and facts.defines(_ASKS_BACK, 0),
        error_codes=tuple(each for each in base.error_codes if facts.defines(each[1], 0)),
    )


def use(draft: DraftRevision) -> None:
    """Judge messages that name *draft* by it from now on, in this process; ValueError for the name of a revision."""
    if draft.name in REVISIONS:
        raise ValueError(f"{draft.name} is a released revision")
    DRAFTS[draft.name] = draft
    FEATURES[draft.name] = draft.features


@contextmanager
def in_use(*drafts: DraftRevision) -> Iterator[None]:
    """Use *drafts* within a block, and forget them after it."""
    for draft in drafts:
        use(draft)
    try:
        yield
    finally:
        for draft in drafts:
            DRAFTS.pop(draft.name, None)
            FEATURES.pop(draft.name, None)
