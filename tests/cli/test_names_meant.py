"""What a person likely meant: options, rules, rungs, methods, revisions, arguments of the library."""

import json
from typing import Any

import pytest

from assay import Conversation, Party, SchemaValidator
from assay.cli.main import main
from assay.rules import RULES
from kit.command import assay_text
from kit.rows import rows
from kit.talk import Talk, notification, request, result

Captured = pytest.CaptureFixture[str]


@rows(
    ("given", "message"),
    [
        ("gaurd", "unknown command 'gaurd'; did you mean guard?"),
        ("--versoin", "unknown option --versoin; did you mean --version?"),
        ("-V", "unknown option -V; did you mean --version?"),
        ("--config=x check y", "--config; an option of a command goes after it: assay COMMAND --config"),
        ("explain contrct", "unknown rule 'contrct'; did you mean contract?"),
        ("explain input", "unknown rule 'input'; did you mean contract/input?"),
        ("explain look-alike-key", "envelope/look-alike-key or protocol/look-alike-key or contract/look-alike-key?"),
        ("explain a b", "assay explain: error: unrecognized arguments: b"),
        ("schemas show latest Tol", "2026-07-28 has no definition 'Tol'; did you mean Tool?"),
        ("wrap --client cluade-desktop", "--client: invalid choice 'cluade-desktop'; did you mean claude-desktop?"),
        ("guard --mode enforc -- x", "--mode: invalid choice 'enforc'; did you mean enforce?"),
        ("guard --mode loud -- x", "--mode: invalid choice 'loud': choose from audit, enforce"),
        ("guard --moed enforce -- true", "assay guard: error: unknown option --moed; did you mean --mode?"),
        ("guard npx -y x", "unknown option -y; what belongs to the server's command goes after --:"),
        ("lock uvx --from x y", "after --: assay lock -- uvx"),
        ("serve --htpp=x", "unknown option --htpp; did you mean --http"),
        ("journal shw", "unknown command 'shw'; did you mean show?"),
        ("journal xyzzy", "unknown command 'xyzzy': choose from list, show, diff"),
    ],
)
def test_a_slip_is_answered_with_what_was_likely_meant(given: str, message: str) -> None:
    done = assay_text(*given.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "usage: " not in done.stderr or "[OPTIONS]" in done.stderr.splitlines()[0]


def test_an_error_shows_the_usage_that_a_command_words_itself(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["call", "--format", "jsn", "http://127.0.0.1:1/mcp"])
    first, second, line = capsys.readouterr().err.splitlines()
    assert first == "usage: assay call [options] URL [TOOL] [ARGUMENTS]"
    assert second.endswith("-- COMMAND")
    assert line == "assay call: error: argument --format: invalid choice 'jsn'; did you mean json?"


def test_an_unknown_option_of_call_is_named_before_a_command(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["call", "--formt", "json", "--", "python", "x"])
    assert capsys.readouterr().err.endswith("assay call: error: unknown option --formt; did you mean --format?\n")


# ── methods ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("sent", "hint"),
    [
        (request(1, "tool/call", {"name": "a"}), "Did you mean tools/call?"),
        (request(1, "Tools/List"), "Did you mean tools/list?"),
        (notification("notification/initialized"), "Did you mean notifications/initialized?"),
        (request(1, "tools/run"), RULES["protocol/method"].fix),
        (request(1, "server/discover"), "server/discover exists in 2026-07-28; this conversation is 2025-11-25."),
    ],
)
def test_a_slip_in_a_method_is_answered_with_the_method(sent: dict[str, Any], hint: str) -> None:
    verdict = Talk().opened().client(sent)
    assert [each.hint for each in verdict.violations if each.rule == "protocol/method"] == [hint]


def test_a_slip_is_not_taken_for_an_extension_without_a_word() -> None:
    said = json.dumps(request(1, "tool/call", {"name": "a"}))
    verdict = Conversation(revision="2025-11-25").hear(Party.CLIENT, said)
    assert [(each.rule, each.hint) for each in verdict.violations] == [
        ("protocol/unheard-extension", "Did you mean tools/call?")
    ]


# ── the library ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_party_may_be_named_by_text() -> None:
    talk: Any = Conversation(revision="2025-11-25")
    assert talk.hear("client", json.dumps(request(1, "tools/list", {}))).party is Party.CLIENT
    assert talk.hear("client", json.dumps(result(1, {"tools": []}))).violations[0].rule == "protocol/unsolicited"
    assert not talk.hear("server", json.dumps(result(1, {"tools": []}))).violations
    with pytest.raises(ValueError, match="'host' is not a valid Party"):
        talk.hear("host", json.dumps(request(2, "tools/list", {})))


def test_an_object_in_place_of_a_frame_is_refused_with_how_to_write_it() -> None:
    message: Any = request(1, "ping")
    for hear in (
        lambda: Conversation().hear(Party.CLIENT, message),
        lambda: SchemaValidator().validate("ping", message),
    ):
        with pytest.raises(TypeError, match=r"not dict; write it with json\.dumps first"):
            hear()


def test_a_reference_that_leads_nowhere_is_shown_with_what_to_define() -> None:
    talk = Talk().opened()
    talk.client(request(1, "tools/list"))
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Size"}, "y": {"type": "strng"}}}
    tools = [{"name": str(number), "inputSchema": each} for number, each in enumerate((schema, {"type": "object"}))]
    listed = talk.server(result(1, {"tools": tools}))
    assert [each.hint for each in listed.violations] == [
        "Define #/$defs/Size in the same schema, or correct the reference."
    ]
