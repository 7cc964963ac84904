"""Methods, notifications and results of unknown extensions: they pass where one was, or may have been, declared."""

from typing import Any

from extended import ACME, MODES, TASKS, discovered, listed, stateless

from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.rules.policy import Policy
from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.rows import rows
from kit.talk import Talk, client, error, frame_of, good, notification, played, request, result, rules, server

METHOD = "acme/search"
PARTIAL = {"resultType": "partial", "anything": True}
PASSES, UNHEARD, UNKNOWN = "protocol/extension", "protocol/unheard-extension", "protocol/method"
UI: dict[str, Any] = {"io.modelcontextprotocol/ui": {"mimeTypes": []}}
LISTENS = stateless(1, "subscriptions/listen", ACME, notifications={})
CALLS: dict[str, Any] = {"name": "search", "arguments": {"words": "sea"}}


@rows("mode", MODES)
@rows("heard", [True, False])
@rows("declared", [{"extensions": ACME}, {"experimental": {"acme": {}}}])
def test_a_method_passes_where_the_client_declares_something_unknown(
    mode: str, heard: bool, declared: dict[str, Any]
) -> None:
    talk = discovered(Talk(mode=mode)) if heard else Talk(mode=mode)
    verdict = played(talk, client(stateless(1, METHOD, able=declared), PASSES))
    assert verdict.onward is verdict.frame
    good(talk.server(result(1, {"resultType": "complete", "anything": True})))


CASES: dict[str, tuple[Any, list[Any]]] = {
    "an unknown method is reported once": (
        {},
        [
            client(stateless(1, METHOD, ACME), PASSES),
            client(stateless(2, METHOD, ACME)),
            client(stateless(3, "acme/other", ACME), PASSES),
        ],
    ),
    "only the server declares something unknown": (
        ACME,
        [
            client(stateless(1, METHOD), PASSES),
            server(error(1, -32021, data={"requiredCapabilities": {"extensions": ACME}})),
        ],
    ),
    "a known extension does not open the door": (
        TASKS,
        [client(stateless(ident, METHOD, each), UNKNOWN) for ident, each in enumerate((None, TASKS, UI))],
    ),
    "what the revision has dropped is no extension": (
        ACME,
        [
            client(stateless(ident, each, ACME), UNKNOWN)
            for ident, each in enumerate(["ping", "logging/setLevel", "resources/subscribe", "tasks/result"])
        ],
    ),
    "names that a known extension reserves belong to no other": (
        ACME,
        [
            client(stateless(ident, each, ACME), UNKNOWN)
            for ident, each in enumerate(["tasks/pause", "skills/run", "ui/open-link", "ui/notifications/size-changed"])
        ],
    ),
    "a notification of an extension that a request has declared": (
        {},
        [client(LISTENS), server(notification("notifications/acme", {"taskId": "t1"}), PASSES)],
    ),
}


@rows(("declared", "steps"), CASES.values(), ids=CASES)
def test_what_passes_where_the_server_has_declared_its_extensions(declared: Any, steps: list[Any]) -> None:
    verdict = played(discovered(Talk(), declared or None), *steps)
    stopped = UNKNOWN in rules(verdict)
    assert verdict.onward is (None if stopped else verdict.frame)


def test_a_policy_that_refuses_extensions_refuses_every_message() -> None:
    talk = discovered(Talk(policy=Policy({"protocol/extension": "refuse"})))
    for ident in (1, 2, 3):
        assert played(talk, client(stateless(ident, METHOD, ACME), PASSES)).onward is None


@rows("extensions", [None, TASKS])
def test_while_no_declaration_of_the_server_was_heard_it_passes_with_a_report(extensions: Any) -> None:
    verdict = played(Talk(), client(stateless(1, METHOD, extensions), UNHEARD))
    assert verdict.onward is verdict.frame
    strict = Talk(policy=Policy(strict=True))
    assert played(strict, client(stateless(1, METHOD, extensions), UNHEARD)).onward is None


def test_a_message_between_a_host_and_its_page_gets_a_hint() -> None:
    verdict = Talk().opened(client={"extensions": ACME}).client(request(1, "ui/initialize", {}))
    assert rules(verdict) == [UNKNOWN]
    assert "between the host and the page" in verdict.violations[0].hint


@rows("revision", REVISIONS)
def test_a_conversation_that_missed_the_handshake_lets_vendor_methods_pass(revision: str) -> None:
    ask = request(1, METHOD, {}) if handshake(revision) else stateless(1, METHOD)
    for party, message in ((Party.CLIENT, ask), (Party.SERVER, notification("notifications/acme", {}))):
        verdict = Conversation(revision=revision).hear(party, frame_of(message))
        assert rules(verdict) == [UNHEARD]
        assert verdict.onward is verdict.frame


def test_what_the_server_declared_is_known_to_every_conversation_about_its_tools() -> None:
    first = discovered(Talk(revision=LATEST))
    tools = first.conversation.tools
    # One begins before the server has declared anything, the other after it.
    second = Talk(revision=LATEST, tools=tools)
    played(second, client(stateless(1, METHOD), UNKNOWN))
    discovered(first, ACME)
    played(second, client(stateless(2, METHOD), PASSES), client(stateless(3, "resources/list"), "protocol/capability"))
    # What was reported is not reported again, whoever asks.
    played(Talk(revision=LATEST, tools=tools), client(stateless(1, METHOD)), client(stateless(2, "acme/x"), PASSES))


def test_a_server_may_declare_less_to_another_client_and_something_else_in_its_next_run() -> None:
    """Over HTTP clients share what is known of the server, and the last declaration is not that to every client."""
    tools = discovered(Talk(revision=LATEST), ACME).conversation.tools
    discovered(Talk(revision=LATEST, tools=tools))
    verdict = played(Talk(revision=LATEST, tools=tools), client(stateless(1, METHOD), PASSES))
    assert verdict.onward is verdict.frame
    played(Talk(revision=LATEST, tools=tools.handed_down()), client(stateless(1, METHOD), UNHEARD))


@rows("mode", MODES)
def test_a_result_of_an_unknown_type_is_not_held_to_the_output_schema(mode: str) -> None:
    asked = client(stateless(1, "tools/call", ACME, **CALLS))
    verdict = played(listed(Talk(mode=mode)), asked, server(result(1, PARTIAL), PASSES))
    assert verdict.onward is verdict.frame


@rows("extensions", [None, TASKS])
def test_a_result_of_an_unknown_type_is_refused_where_nothing_unknown_was_declared(extensions: Any) -> None:
    asked = client(stateless(1, "tools/call", extensions, **CALLS))
    verdict = played(listed(discovered(Talk())), asked, server(result(1, PARTIAL), "protocol/result-type"))
    assert verdict.onward is not verdict.frame
