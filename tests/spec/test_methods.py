"""The method table against the protocol's own unions, and the rows that schemas do not tell."""

from assay.spec.methods import Kind, PartyName, methods, revisions_of
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema
from kit.rows import rows

UNIONS: list[tuple[str, PartyName, Kind]] = [
    ("ClientRequest", "client", "request"),
    ("ServerRequest", "server", "request"),
    ("ClientNotification", "client", "notification"),
    ("ServerNotification", "server", "notification"),
]


@rows(("union", "sender", "kind"), UNIONS)
@rows("revision", REVISIONS)
def test_the_table_is_the_protocols_own_unions(revision: str, union: str, sender: PartyName, kind: Kind) -> None:
    """Source: ClientRequest … of each revision; 2026-07-28 has no ServerRequest, its servers only answer."""
    protocol = protocol_schema(revision)
    theirs = set()
    if union in protocol.definitions:
        schema = protocol.definition(union)
        theirs = {each["$ref"].rpartition("/")[2] for each in schema.get("anyOf", [schema])}
    ours = {each for each in methods(revision).values() if each.kind == kind and sender in each.senders}
    assert {each.definition for each in ours} == theirs


@rows("revision", REVISIONS)
def test_every_definition_named_exists_and_carries_the_method(revision: str) -> None:
    protocol = protocol_schema(revision)
    for name, method in methods(revision).items():
        assert method.name == name
        assert protocol.definition(method.definition)["properties"]["method"] == {"const": name}
        assert (method.result is None) is (method.kind == "notification")
        assert method.result is None or method.result in protocol.definitions


@rows("revision", REVISIONS)
def test_every_capability_is_one_that_the_party_can_declare(revision: str) -> None:
    protocol = protocol_schema(revision)
    for method in methods(revision).values():
        for sender in method.senders:
            needed = method.needs(sender)
            if needed is None:
                continue
            party, path = needed
            node = protocol.definition(f"{party.capitalize()}Capabilities")
            for step in path.split("."):
                assert step in node["properties"], (method.name, path)
                node = node["properties"][step]


@rows(
    ("revision", "name", "sender", "needed"),
    [
        ("2025-11-25", "resources/subscribe", "client", ("server", "resources.subscribe")),
        ("2024-11-05", "completion/complete", "client", None),
        ("2025-03-26", "completion/complete", "client", ("server", "completions")),
        ("2025-11-25", "tasks/list", "server", ("client", "tasks.list")),
        ("2025-11-25", "notifications/tasks/status", "server", ("server", "tasks")),
        ("2025-11-25", "notifications/roots/list_changed", "client", ("client", "roots.listChanged")),
        ("2025-11-25", "ping", "server", None),
    ],
)
def test_a_method_needs_the_capability_of_one_party(
    revision: str, name: str, sender: PartyName, needed: tuple[str, str] | None
) -> None:
    assert methods(revision)[name].needs(sender) == needed


@rows(
    ("name", "revisions"),
    [
        ("tools/call", REVISIONS),
        ("initialize", REVISIONS[:4]),
        ("elicitation/create", REVISIONS[2:4]),
        ("server/discover", REVISIONS[4:]),
        ("tools/cal", ()),
    ],
)
def test_the_revisions_of_a_method_are_known(name: str, revisions: tuple[str, ...]) -> None:
    assert revisions_of(name) == revisions
