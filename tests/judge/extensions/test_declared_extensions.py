"""What a party declares: the identifiers of extensions, their settings, and what is reserved."""

from typing import Any

from extended import TASKS, discover, discovered, listed, stateless

from assay.rules.policy import Policy
from assay.spec.revisions import REVISIONS, handshake
from kit.rows import rows
from kit.talk import HITS, Talk, good, request, rules

UI = "io.modelcontextprotocol/ui"
SKILLS = "io.modelcontextprotocol/skills"
HANDSHAKES = [each for each in REVISIONS if handshake(each)]

LEGAL: list[dict[str, Any]] = [
    {},
    TASKS,
    {UI: {"mimeTypes": ["text/html;profile=mcp-app"], "more": 1}},
    {"com.example/x": {"any": ["thing"]}, "com.example.mcp/y": {}},
    {"a/": {}, "a-b.c1/n.a_m-e": {}, "x/1": {}},
]
ILLEGAL: list[tuple[dict[str, Any], str]] = [
    ({"search": {}}, "extension/identifier"),
    ({"": {}}, "extension/identifier"),
    ({"/name": {}}, "extension/identifier"),
    ({"1com/x": {}}, "extension/identifier"),
    ({"com-/x": {}}, "extension/identifier"),
    ({"com..example/x": {}}, "extension/identifier"),
    ({"com.example/-x": {}}, "extension/identifier"),
    ({"com.example/x/y": {}}, "extension/identifier"),
    ({"com.example/" + "x" * 300: {}}, "extension/identifier"),
    ({"io.modelcontextprotocol/task": {}}, "extension/reserved"),
    ({"dev.MCP/anything": {}}, "extension/reserved"),
    ({"io.modelcontextprotocol/tasks": {"list": {}}}, "extension/settings"),
    ({UI: {}}, "extension/settings"),
    ({UI: {"mimeTypes": "text/html"}}, "extension/settings"),
]


@rows("extensions", LEGAL)
def test_a_client_may_declare_these_in_its_handshake_and_with_each_request(extensions: dict[str, Any]) -> None:
    for revision in HANDSHAKES:
        Talk().opened(revision, client={"extensions": extensions})
    good(Talk().client(stateless(1, "tools/list", extensions)))


@rows(("extensions", "rule"), ILLEGAL)
def test_what_a_request_declares_wrongly_is_reported_once_and_forwarded(extensions: dict[str, Any], rule: str) -> None:
    talk = Talk()
    verdict = talk.client(stateless(1, "tools/list", extensions))
    assert rules(verdict) == [rule]
    assert verdict.onward is verdict.frame
    good(talk.client(stateless(2, "tools/list", extensions)))


@rows("revision", HANDSHAKES)
@rows("settings", [True, None, [], "on", 1])
def test_settings_are_an_object_in_a_handshake_too_where_the_schema_says_nothing(revision: str, settings: Any) -> None:
    capabilities = {"extensions": {"com.example/x": settings}}
    information = {"name": "a", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": information}
    verdict = Talk().client(request(1, "initialize", params))
    assert rules(verdict) == ["extension/settings"]
    assert verdict.violations[0].at == "/params/capabilities/extensions/com.example~1x"


def test_under_a_strict_policy_a_wrong_identifier_is_refused_every_time() -> None:
    talk = Talk(policy=Policy(strict=True))
    for ident in (1, 2):
        assert talk.client(stateless(ident, "tools/list", {"search": {}})).onward is None


@rows(
    ("declared", "rule"),
    [
        ({"extensions": {"search": {}}}, "extension/identifier"),
        ({"extensions": {SKILLS: {"directoryRead": "yes"}}, "resources": {}}, "extension/settings"),
        ({"extensions": {UI: {}}}, None),
        ({"extensions": {SKILLS: {"directoryRead": True}}, "resources": {}}, None),
        ({"tasks": {"cancel": {}}}, "tasks/legacy"),
    ],
)
def test_what_a_server_declares_is_judged_as_well(declared: dict[str, Any], rule: str | None) -> None:
    verdict = discover(Talk(), **declared)
    assert rules(verdict) == ([rule] if rule else [])
    assert verdict.onward is verdict.frame


def test_a_declaration_that_was_good_before_takes_the_quick_way() -> None:
    """A call with other extensions than the one before it is judged in full."""
    talk = listed(discovered(Talk(), TASKS))
    for ident, extensions in enumerate([TASKS, TASKS, {"search": {}}, TASKS, {"search": {}}, {"other": {}}], 1):
        verdict = talk.client(stateless(ident, "tools/call", extensions, name="search", arguments={"words": "sea"}))
        assert rules(verdict) == (["extension/identifier"] if ident in {3, 6} else [])
        good(talk.server({"jsonrpc": "2.0", "id": ident, "result": {"resultType": "complete", **HITS}}))


def test_a_thousand_extensions_cost_no_more_than_a_few() -> None:
    many: dict[str, Any] = {f"name{number}": {} for number in range(5000)}
    verdict = Talk().client(stateless(1, "tools/list", many))
    assert len(verdict.violations) <= 20
    assert verdict.more <= 64
