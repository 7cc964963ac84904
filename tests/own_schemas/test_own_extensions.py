"""Extensions that an operator configures: how the settings name them, and how their messages are judged."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from own_documents import (
    IDENTIFIER,
    NAME,
    REVISION_KEY,
    SETTINGS,
    draft_document,
    extension_document,
    facts,
    meta,
    written,
)

from assay.settings import SettingsError, load, load_cautiously
from assay.settings.added_schemas import keep
from assay.settings.own_schemas import extension_set
from assay.spec.document_facts import DocumentError
from assay.spec.draft_revisions import DraftRevision, in_use
from assay.spec.extensions.configured import ConfiguredMethod, configured
from assay.spec.extensions.official import OFFICIAL, ExtensionSet
from assay.spec.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS, handshake
from kit.command import assay_text
from talk import Talk, answer, good, notification, replacement, request, result, rules

HANDSHAKES = [each for each in REVISIONS if handshake(each)]
DECLARED: dict[str, Any] = {"extensions": {IDENTIFIER: {}}}
COMPLETE: dict[str, Any] = {"resultType": "complete"}

ROWS = (
    ConfiguredMethod("x/run", "client", "RunParams", "RunResult"),
    ConfiguredMethod("x/ask", "server", "AskParams", None),
    ConfiguredMethod("notifications/x/done", "server", "DoneParams", None),
)


@pytest.fixture(scope="module")
def extensions() -> ExtensionSet:
    own = configured(IDENTIFIER, "x.schema.json", facts(extension_document()), ROWS)
    return ExtensionSet((*OFFICIAL.all, own))


def opened(extensions: ExtensionSet, revision: str = LATEST_HANDSHAKE, **options: Any) -> Talk:
    return Talk(extensions=extensions, **options).opened(revision, client=DECLARED, server=DECLARED)


# ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_good_messages_pass_unchanged(extensions: ExtensionSet, revision: str) -> None:
    talk = opened(extensions, revision)
    good(talk.client(request(1, "x/run", {"job": {"steps": 2}, "_meta": {"progressToken": 5}})))
    good(talk.server(result(1, {"ran": 2, "_meta": {"a": 1}})))
    good(talk.server(request(7, "x/ask", {"text": "?"})))
    good(talk.client(result(7, {"anything": True})))
    good(talk.server(notification("notifications/x/done", {"ran": 2, "_meta": {}})))


@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize(
    ("params", "at", "definition"),
    [
        ({}, "/params", "RunParams"),
        ({"job": {"steps": 0}}, "/params/job/steps", "RunParams"),
        ({"job": {"steps": 1}, "tool": {"name": 5}}, "/params/tool", "RunParams"),
    ],
)
def test_bad_params_are_refused_with_the_extension_as_the_source(
    extensions: ExtensionSet, revision: str, params: Any, at: str, definition: str
) -> None:
    verdict = opened(extensions, revision).client(request(1, "x/run", params))
    assert not verdict.accepted
    assert {each.rule for each in verdict.violations} == {"protocol/params"}
    wrong = verdict.violations[0]
    assert wrong.at.startswith(at)
    assert wrong.source == f"{IDENTIFIER}, schema: {definition}"
    assert answer(verdict)["error"]["code"] == -32602


def test_the_hint_names_the_definition_and_its_file(extensions: ExtensionSet) -> None:
    verdict = opened(extensions).client(request(1, "x/run", {"job": {"steps": 0}}))
    assert verdict.violations[0].hint == "The definition Job in x.schema.json has the expected shape."


def test_missing_params_are_refused(extensions: ExtensionSet) -> None:
    verdict = opened(extensions).client(request(1, "x/run"))
    assert rules(verdict) == ["protocol/params"]
    assert not verdict.accepted


def test_a_bad_result_is_replaced(extensions: ExtensionSet) -> None:
    talk = opened(extensions)
    good(talk.client(request(1, "x/run", {"job": {"steps": 1}})))
    verdict = talk.server(result(1, {"ran": "all"}))
    assert rules(verdict) == ["protocol/result"]
    assert verdict.violations[0].source == f"{IDENTIFIER}, schema: RunResult"
    assert "error" in replacement(verdict)


def test_members_that_the_definition_excludes_are_refused_and_those_of_the_protocol_are_not(
    extensions: ExtensionSet,
) -> None:
    talk = opened(extensions)
    verdict = talk.server(notification("notifications/x/done", {"ran": 1, "more": 1}))
    assert rules(verdict) == ["protocol/params"]
    good(talk.server(notification("notifications/x/done", {"ran": 1, "_meta": {}})))


def test_members_of_the_protocol_are_allowed_through_references_too() -> None:
    document = {
        "$defs": {
            "RunParams": {"allOf": [{"$ref": "#/$defs/Base"}, {"anyOf": [{"$ref": "#/$defs/Loop"}]}]},
            "Base": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
            "Loop": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Base"}}, "not": {"required": ["b"]}},
            "RunResult": {"$ref": "#/$defs/Base"},
        }
    }
    own = configured(IDENTIFIER, "x.schema.json", facts(document), ROWS[:1])
    talk = Talk(extensions=ExtensionSet([own]))
    assert set(rules(talk.client(stateless(1, "x/run", a=5)))) == {"protocol/params"}
    assert rules(talk.client(stateless(2, "x/run", c="c"))) == ["protocol/params"]
    good(talk.client(stateless(3, "x/run")))
    good(talk.server(result(3, {**COMPLETE, "a": "b", "_meta": {}})))


@pytest.mark.parametrize("revision", HANDSHAKES)
def test_a_definition_of_a_newer_revision_is_taken_along(revision: str) -> None:
    """The oldest revisions have no `Icon`, which is a definition of the latest one."""
    document = {"$defs": {"RunParams": {"type": "object", "properties": {"icon": {"$ref": "#/$defs/Icon"}}}}}
    rows = [ConfiguredMethod("x/run", "client", "RunParams", None)]
    own = configured(IDENTIFIER, "x.schema.json", facts(document), rows)
    talk = opened(ExtensionSet((*OFFICIAL.all, own)), revision)
    good(talk.client(request(1, "x/run", {"icon": {"src": "https://a.example/i.png"}})))
    assert rules(talk.client(request(2, "x/run", {"icon": {}}))) == ["protocol/params"]


def test_official_and_own_extensions_are_judged_on_top_of_a_draft() -> None:
    document = draft_document()
    # The draft has renamed a definition that the official skills refer to.
    defs = json.loads(json.dumps(document["$defs"]).replace('#/$defs/Resource"', '#/$defs/Thing"'))
    defs["Thing"] = defs.pop("Resource")
    own = configured(IDENTIFIER, "x.schema.json", facts(extension_document()), ROWS)
    extensions = ExtensionSet((*OFFICIAL.all, own))
    with in_use(DraftRevision(NAME, facts({"$defs": defs}))):
        talk = Talk(extensions=extensions)
        message = request(1, "x/run", {"job": {"steps": 0}, "_meta": meta(NAME, **DECLARED)})
        verdict = talk.client(message)
        assert rules(verdict) == ["protocol/params"]
        assert not verdict.accepted, "the operator asked for the extension"
        assert verdict.violations[0].source == f"{IDENTIFIER}, schema: RunParams"
        for extension in extensions.all:
            schema = extensions.schema(extension, NAME)
            assert all(schema.validator(name) for name in schema.own)


def test_a_method_of_the_other_party_is_a_finding(extensions: ExtensionSet) -> None:
    verdict = opened(extensions).server(request(1, "x/run", {"job": {"steps": 1}}))
    assert rules(verdict) in (["protocol/direction"], ["protocol/extension"])


def test_under_audit_everything_passes_and_is_reported(extensions: ExtensionSet) -> None:
    talk = opened(extensions, mode="audit")
    verdict = talk.client(request(1, "x/run", {}))
    assert verdict.onward is verdict.frame
    assert rules(verdict) == ["protocol/params"]


def stateless(ident: Any, method: str, **params: Any) -> dict[str, Any]:
    return request(ident, method, {**params, "_meta": meta(LATEST, **DECLARED)})


def test_without_a_handshake_what_every_message_needs_is_needed_too(extensions: ExtensionSet) -> None:
    talk = Talk(extensions=extensions)
    good(talk.client(stateless(1, "x/run", job={"steps": 1})))
    good(talk.server(result(1, {**COMPLETE, "ran": 1})))
    bare = {"job": {"steps": 1}, "_meta": {REVISION_KEY: LATEST}}
    verdict = talk.client(request(2, "x/run", bare))
    assert rules(verdict) == ["protocol/params"]
    assert verdict.violations[0].at == "/params/_meta"
    good(talk.client(stateless(3, "x/run", job={"steps": 1})))
    verdict = talk.server(result(3, {"ran": 1}))
    assert (rules(verdict), verdict.accepted) == (["protocol/result-type-missing"], True)


def test_without_the_settings_the_methods_are_judged_as_unknown_ones() -> None:
    talk = Talk().opened(client=DECLARED, server=DECLARED)
    assert rules(talk.client(request(1, "x/run", {}))) == ["protocol/extension"]
    talk = Talk().opened()
    assert rules(talk.client(request(1, "x/run", {}))) == ["protocol/method"]


def test_a_definition_that_is_missing_is_named_with_the_close_one() -> None:
    rows = [ConfiguredMethod("x/run", "client", "RunParam", None)]
    with pytest.raises(DocumentError) as caught:
        configured(IDENTIFIER, "x.schema.json", facts(extension_document()), rows)
    assert str(caught.value) == "x/run: x.schema.json has no definition 'RunParam'; did you mean RunParams?"


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the settings and the schema beside them."""
    written(tmp_path / "x.schema.json", extension_document())
    (tmp_path / "assay.toml").write_text(SETTINGS)
    return tmp_path


def objection(place: Path, before: str, after: str) -> str:
    """The error of the settings in which *after* stands in place of *before*."""
    assert before in SETTINGS
    (place / "assay.toml").write_text(SETTINGS.replace(before, after))
    with pytest.raises(SettingsError) as caught:
        extension_set(load({}, place), {})
    [line] = str(caught.value).splitlines()
    return line.removeprefix("assay.toml: ")


def test_the_settings_give_the_extension(place: Path) -> None:
    found = extension_set(load({}, place), {})
    assert set(found.methods(LATEST)) == {*OFFICIAL.methods(LATEST), "x/run", "x/ask", "notifications/x/done"}
    assert IDENTIFIER in found.identifiers


def test_without_extensions_the_official_ones_are_used(tmp_path: Path) -> None:
    assert extension_set(load({}, tmp_path), {}) is OFFICIAL


def test_the_path_is_relative_to_the_file_of_the_settings(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = load({}, tmp_path_factory.mktemp("elsewhere"), file=str(place / "assay.toml"))
    assert settings.extensions[IDENTIFIER].schema == os.path.realpath(place / "x.schema.json")


def test_an_added_schema_is_used_by_its_name(place: Path, tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    keep(environ, "mine", json.dumps(extension_document()).encode())
    (place / "assay.toml").write_text(SETTINGS.replace("x.schema.json", "mine"))
    assert "x/run" in extension_set(load({}, place), environ).methods(LATEST)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ('sender = "client"', 'sneder = "client"', ".methods.x/run.sneder: unknown key; did you mean sender?"),
        (
            'sender = "client"', 'sender = "clent"',
            '.methods.x/run.sender: expected one of client, server, found the string "clent"; did you mean client?',
        ),
        ('params = "RunParams"', "params = 5", ".methods.x/run.params: expected a string, found 5"),
        (
            'params = "RunParams"', 'params = "RunParms"',
            ": x/run: x.schema.json has no definition 'RunParms'; did you mean RunParams?",
        ),
        (
            'result = "RunResult"', 'result = "Job_"',
            ": x/run: x.schema.json has no definition 'Job_'; did you mean Job?",
        ),
        ('schema = "x.schema.json"', 'scheme = "x.schema.json"', ".scheme: unknown key; did you mean schema?"),
        ('schema = "x.schema.json"', 'schema = "gone.json"', ".schema: gone.json: No such file or directory"),
        (
            'schema = "x.schema.json"', 'schema = "mine"',
            ".schema: mine: there is no state directory: HOME is not set, or not an absolute path",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_key_and_a_suggestion(place: Path, before: str, after: str, line: str) -> None:
    assert objection(place, before, after) == f"extensions.{IDENTIFIER}{line}"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('sender = "client"\n', "", "a method needs a sender: client or server"),
        ('schema = "x.schema.json"\n', "", "an extension needs a schema: a file, or the name of an added schema"),
        (
            'params = "DoneParams"',
            'result = "RunResult"',
            "notifications/x/done: a notification has no result; remove it",
        ),
        ("x/run", "tools/call", f"tools/call is a method of {', '.join(REVISIONS)}"),
        ("x/run", "tasks/get", "tasks/get is a method of 2025-11-25"),
        ("x/run", "skills/new", "skills/new is reserved for the extension io.modelcontextprotocol/skills"),
        (IDENTIFIER, "x", "expected an identifier such as com.example/name, found 'x'"),
        (IDENTIFIER, "io.modelcontextprotocol/tasks", "io.modelcontextprotocol/tasks is an official extension"),
    ],
)
def test_a_value_that_makes_no_sense_is_reported(place: Path, before: str, after: str, why: str) -> None:
    assert why in objection(place, before, after)


def test_two_extensions_cannot_have_one_method(place: Path) -> None:
    (place / "assay.toml").write_text(SETTINGS + SETTINGS.replace(IDENTIFIER, "com.example/y"))
    with pytest.raises(SettingsError, match="x/run: two extensions have this method"):
        load({}, place)


# ── settings of a stranger ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_is_found_configures_no_extension(place: Path) -> None:
    lines: list[str] = []
    found = load_cautiously({"HOME": str(place)}, place, log=lines.append)
    assert dict(found.settings.extensions) == {}
    assert [each.name for each in found.ignored] == [f'extensions."{IDENTIFIER}"']
    assert lines[-1].startswith(f'[extensions."{IDENTIFIER}"] ignored: ')
    named = load_cautiously({"HOME": str(place)}, place, file="assay.toml")
    assert list(named.settings.extensions) == [IDENTIFIER]


def test_a_file_that_is_found_chooses_no_draft(place: Path) -> None:
    (place / "assay.toml").write_text('[guard]\ndraft_revisions = ["DRAFT-1"]\n')
    found = load_cautiously({"HOME": str(place)}, place)
    assert found.settings.guard.draft_revisions == ()
    assert [each.name for each in found.ignored] == ["guard.draft_revisions"]


@pytest.mark.parametrize("schema", ["../secret.json", "/etc/secret.json", "sub/../../secret.json", "link.json"])
def test_no_schema_outside_the_directory_of_the_settings_is_read(place: Path, schema: str) -> None:
    home = place / "checkout"
    home.mkdir()
    (home / "sub").mkdir()
    written(place / "secret.json", extension_document())
    (home / "link.json").symlink_to(place / "secret.json")
    (home / "assay.toml").write_text(SETTINGS.replace("x.schema.json", schema))
    for file in (None, "assay.toml"):
        with pytest.raises(SettingsError) as caught:
            load({}, home, file=file)
        assert "expected a file in the directory of the settings, or below it" in str(caught.value)


def test_check_judges_by_the_extensions_of_the_settings(place: Path) -> None:
    rows = [
        ("c2s", request(1, "initialize", {
            "protocolVersion": LATEST_HANDSHAKE, "capabilities": DECLARED, "clientInfo": {"name": "a", "version": "1"},
        })),
        ("s2c", result(1, {
            "protocolVersion": LATEST_HANDSHAKE, "capabilities": DECLARED, "serverInfo": {"name": "a", "version": "1"},
        })),
        ("c2s", notification("notifications/initialized")),
        ("c2s", request(2, "x/run", {"job": {"steps": "two"}})),
    ]  # fmt: skip
    said = "".join(json.dumps({"dir": way, "msg": json.dumps(message)}) + "\n" for way, message in rows)
    done = assay_text("check", "-", "--format", "ndjson", cwd=place, said=said)
    assert f"{IDENTIFIER}, schema: RunParams" in done.stdout
    assert done.returncode == 1
