"""Methods, notifications and results of unknown extensions: they pass where one was, or may have been, declared."""

from typing import Any

import pytest
from extended import ACME, MODES, TASKS, discovered, listed, stateless

from assay.base.verdict import Party
from assay.core.conversation import Conversation
from assay.core.policy import Policy
from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.rows import rows
from kit.talk import Talk, error, frame_of, good, notification, request, result, rules

METHOD = "acme/search"
PARTIAL = {"resultType": "partial", "anything": True}


# ── methods ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("mode", MODES)
@rows("heard", [True, False])
@rows("declared", [{"extensions": ACME}, {"experimental": {"acme": {}}}])
def test_a_method_passes_where_the_client_declares_something_unknown(
    mode: str, heard: bool, declared: dict[str, Any]
) -> None:
    talk = discovered(Talk(mode=mode)) if heard else Talk(mode=mode)
    verdict = talk.client(stateless(1, METHOD, able=declared))
    assert rules(verdict) == ["protocol/extension"]
    assert verdict.onward is verdict.frame
    good(talk.server(result(1, {"resultType": "complete", "anything": True})))


def test_an_unknown_method_is_reported_once_in_a_conversation() -> None:
    talk = discovered(Talk())
    assert rules(talk.client(stateless(1, METHOD, ACME))) == ["protocol/extension"]
    good(talk.client(stateless(2, METHOD, ACME)))
    assert rules(talk.client(stateless(3, "acme/other", ACME))) == ["protocol/extension"]


def test_a_policy_that_refuses_extensions_refuses_every_message() -> None:
    talk = discovered(Talk(policy=Policy({"protocol/extension": "refuse"})))
    for ident in (1, 2, 3):
        verdict = talk.client(stateless(ident, METHOD, ACME))
        assert (verdict.onward, rules(verdict)) == (None, ["protocol/extension"])


def test_a_method_passes_where_only_the_server_declares_something_unknown() -> None:
    talk = discovered(Talk(), ACME)
    assert talk.client(stateless(1, METHOD)).onward is not None
    good(talk.server(error(1, -32021, data={"requiredCapabilities": {"extensions": ACME}})))


@pytest.mark.parametrize("extensions", [None, TASKS, {"io.modelcontextprotocol/ui": {"mimeTypes": []}}])
def test_a_known_extension_does_not_open_the_door_to_unknown_methods(extensions: dict[str, Any] | None) -> None:
    verdict = discovered(Talk(), TASKS).client(stateless(1, METHOD, extensions))
    assert (verdict.onward, rules(verdict)) == (None, ["protocol/method"])


@pytest.mark.parametrize("extensions", [None, TASKS])
def test_while_no_declaration_of_the_server_was_heard_it_passes_with_a_report(
    extensions: dict[str, Any] | None,
) -> None:
    verdict = Talk().client(stateless(1, METHOD, extensions))
    assert rules(verdict) == ["protocol/unheard-extension"]
    assert verdict.onward is verdict.frame
    strict = Talk(policy=Policy(strict=True)).client(stateless(1, METHOD, extensions))
    assert (strict.onward, rules(strict)) == (None, ["protocol/unheard-extension"])


@rows("method", ["ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/result"])
def test_a_method_that_the_revision_has_dropped_is_no_extension(method: str) -> None:
    verdict = Talk().client(stateless(1, method, ACME))
    assert "protocol/method" in rules(verdict)
    assert verdict.onward is None


@rows("method", ["tasks/pause", "skills/run", "ui/open-link", "ui/notifications/size-changed"])
def test_names_that_a_known_extension_reserves_belong_to_no_other(method: str) -> None:
    verdict = Talk().client(stateless(1, method, ACME))
    assert (verdict.onward, rules(verdict)) == (None, ["protocol/method"])


def test_a_message_between_a_host_and_its_page_gets_a_hint() -> None:
    verdict = Talk().opened(client={"extensions": ACME}).client(request(1, "ui/initialize", {}))
    assert rules(verdict) == ["protocol/method"]
    assert "between the host and the page" in verdict.violations[0].hint


def test_a_server_without_handshake_has_no_requests() -> None:
    talk = Talk()
    good(talk.client(stateless(1, "tools/list")))
    verdict = talk.server(request(1, "acme/ask", {}))
    assert (verdict.onward, rules(verdict)) == (None, ["protocol/method"])


# ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_notification_of_an_extension_that_a_request_has_declared_passes() -> None:
    talk = discovered(Talk())
    good(talk.client(stateless(1, "subscriptions/listen", ACME, notifications={})))
    verdict = talk.server(notification("notifications/acme", {"taskId": "t1"}))
    assert rules(verdict) == ["protocol/extension"]
    assert verdict.onward is verdict.frame


def test_a_notification_passes_with_a_report_while_no_declaration_was_heard() -> None:
    verdict = Talk(revision=LATEST).server(notification("notifications/acme", {}))
    assert rules(verdict) == ["protocol/unheard-extension"]
    assert verdict.onward is verdict.frame


# ── what was declared elsewhere ──────────────────────────────────────────────────────────────────────────────────────


@rows("revision", REVISIONS)
def test_a_conversation_that_missed_the_handshake_lets_vendor_methods_pass(revision: str) -> None:
    ask = request(1, METHOD, {}) if handshake(revision) else stateless(1, METHOD)
    for party, message in ((Party.CLIENT, ask), (Party.SERVER, notification("acme/told", {}))):
        verdict = Conversation(revision=revision).hear(party, frame_of(message))
        assert rules(verdict) == ["protocol/unheard-extension"]
        assert verdict.onward is verdict.frame


def test_what_the_server_declared_is_known_to_every_conversation_about_its_tools() -> None:
    first = discovered(Talk(revision=LATEST))
    tools = first.conversation.tools
    # One begins before the server has declared anything, the other after it.
    second = Talk(revision=LATEST, tools=tools)
    assert rules(second.client(stateless(1, METHOD))) == ["protocol/method"]
    discovered(first, ACME)
    assert rules(second.client(stateless(2, METHOD))) == ["protocol/extension"]
    assert rules(second.client(stateless(3, "resources/list"))) == ["protocol/capability"]
    assert rules(Talk(revision=LATEST, tools=tools).client(stateless(1, "acme/other"))) == ["protocol/extension"]


def test_a_server_may_declare_less_to_another_client() -> None:
    """Over HTTP clients share what is known of the server, and the last declaration is not that to every client."""
    first = discovered(Talk(revision=LATEST), ACME)
    tools = first.conversation.tools
    discovered(Talk(revision=LATEST, tools=tools))
    verdict = Talk(revision=LATEST, tools=tools).client(stateless(1, METHOD))
    assert rules(verdict) == ["protocol/extension"]
    assert verdict.onward is verdict.frame


def test_what_was_reported_is_not_reported_again_in_a_conversation_with_the_same_server() -> None:
    tools = discovered(Talk(revision=LATEST), ACME).conversation.tools
    assert rules(Talk(revision=LATEST, tools=tools).client(stateless(1, METHOD))) == ["protocol/extension"]
    good(Talk(revision=LATEST, tools=tools).client(stateless(1, METHOD)))


def test_the_next_run_of_a_server_may_declare_something_else() -> None:
    tools = discovered(Talk(revision=LATEST)).conversation.tools.handed_down()
    verdict = Talk(revision=LATEST, tools=tools).client(stateless(1, METHOD))
    assert rules(verdict) == ["protocol/unheard-extension"]


# ── results ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", MODES)
def test_a_result_of_an_unknown_type_is_not_held_to_the_output_schema(mode: str) -> None:
    talk = listed(Talk(mode=mode))
    good(talk.client(stateless(1, "tools/call", ACME, name="search", arguments={"words": "sea"})))
    verdict = talk.server(result(1, PARTIAL))
    assert rules(verdict) == ["protocol/extension"]
    assert verdict.onward is verdict.frame


@pytest.mark.parametrize("extensions", [None, TASKS])
def test_a_result_of_an_unknown_type_is_refused_where_nothing_unknown_was_declared(
    extensions: dict[str, Any] | None,
) -> None:
    talk = listed(discovered(Talk()))
    good(talk.client(stateless(1, "tools/call", extensions, name="search", arguments={"words": "sea"})))
    verdict = talk.server(result(1, PARTIAL))
    assert rules(verdict) == ["protocol/result-type"]
    assert verdict.onward is not verdict.frame
