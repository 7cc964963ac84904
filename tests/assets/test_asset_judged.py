"""
All that the asset server says, judged like the words of any other server.

The server vouches for the results of its tools and does not have them read again (`Conversation.vouch`). Here a
conversation that knows nothing hears both parties: what is taken on trust there is proved here.
"""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from assay.assets import store_backend
from assay.assets.asset_server import AssetServer
from assay.assets.asset_tools import TOOLS
from assay.assets.mcp_content import PAGE
from assay.assets.mcp_methods import Methods
from assay.assets.response_envelope import ResponseEnvelope, Tiers
from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.schema.compiled import compile_schema
from assay.spec.methods import methods as methods_of
from assay.spec.revisions import LATEST, REVISIONS, handshake
from kit.asset_requests import answer, bundled_methods, opened, opening
from kit.catalogues import BUNDLED, bundled, of_schemas
from kit.http_client import call, frame_of, request
from kit.rows import rows
from kit.talk import found

ASSET = json.loads((BUNDLED / "examples" / "synesthetic-asset.quiet.json").read_bytes())

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("list_schemas", {}),
    ("get_schema", {"name": "tone"}),
    ("get_schema", {"name": "nested-synesthetic-asset"}),
    ("get_schema", {"name": "nope"}),
    ("list_examples", {}),
    ("list_examples", {"component": "all"}),
    ("list_examples", {"component": "nope"}),
    ("get_example", {"path": "tone.hum.json"}),
    ("get_example", {"path": "../../pyproject.toml"}),
    ("validate_asset", {"asset": ASSET, "schema": "synesthetic-asset"}),
    ("validate_asset", {"asset": {"name": 1, "é": [None]}, "schema": "synesthetic-asset"}),
    ("validate_asset", {"asset": None, "schema": "nope"}),
    ("diff_assets", {"base": {}, "new": {}}),
    ("diff_assets", {"base": {"a": 1, "b": [1]}, "new": {"a/b~": 2**70, "b": []}}),
    ("diff_assets", {"base": None, "new": "\u2028\U0001f600\\\""}),
    ("populate_backend", {"asset": ASSET}),
    ("populate_backend", {"asset": {}}),
    ("populate_backend", {"asset": [], "validate_first": False}),
]  # fmt: skip
"""Arguments that fit, for every tool; some lead to failures, which are results too."""

BAD: list[tuple[str, dict[str, Any]]] = [
    ("list_schemas", {"more": 1}),
    ("get_schema", {}),
    ("get_schema", {"name": 1}),
    ("list_examples", {"component": None}),
    ("get_example", {"path": ["tone.hum.json"]}),
    ("get_example", {"name": "tone.hum.json", "a/b~": {}}),
    ("validate_asset", {"asset": {}}),
    ("validate_asset", {"asset": {}, "schema": {}}),
    ("diff_assets", {"base": {}}),
    ("diff_assets", {f"é{number}": "\ud7ff" for number in range(50)}),
    ("populate_backend", {"asset": {}, "validate_first": "true"}),
    ("populate_backend", {}),
]
"""Arguments that break the contract, for every tool."""


class Heard:
    """A client and the server, and what a conversation thinks of both."""

    def __init__(self, methods: Methods, revision: str, **options: Any) -> None:
        self.server = AssetServer(methods, **options)
        self.judge = Conversation()
        for message in opening(revision):
            self.say(message)

    def say(self, message: Any) -> list[Any]:
        """What the server says to *message*; neither says anything wrong."""
        frame = frame_of(message)
        self._judge(Party.CLIENT, frame)
        frames = self.server.respond(frame)
        for each in frames:
            self._judge(Party.SERVER, each)
        return [json.loads(each) for each in frames]

    def _judge(self, party: Party, frame: bytes) -> None:
        verdict = self.judge.hear(party, frame)
        assert found(verdict) == [], (party, frame[:500], verdict.violations)
        assert verdict.onward is frame
        assert verdict.back is None
        assert verdict.kind != "unreadable"


@pytest.fixture(scope="module")
def methods() -> Methods:
    return bundled_methods()


every_revision = rows("revision", REVISIONS)


@every_revision
def test_every_result_of_a_tool_is_what_the_revision_and_the_tool_promise(methods: Methods, revision: str) -> None:
    assert {tool for tool, _ in GOOD} == {tool for tool, _ in BAD} == set(TOOLS)
    heard = Heard(methods, revision)
    [listed] = heard.say(request("list", "tools/list", {}, revision))
    assert [tool["name"] for tool in listed["result"]["tools"]] == list(TOOLS)
    for tool in listed["result"]["tools"]:
        assert tool["description"]
        assert ("outputSchema" in tool) == (revision >= "2025-06-18")
        assert ("annotations" in tool) == (revision >= "2025-03-26")
    for ident, (tool, arguments) in enumerate(GOOD):
        [found] = heard.say(call(ident, tool, arguments, revision))
        _check_promise(tool, found["result"], revision)
    assert heard.judge.open_requests(Party.CLIENT) == ()


@every_revision
def test_every_result_is_so_with_a_tier_and_a_backend_too(monkeypatch: pytest.MonkeyPatch, revision: str) -> None:
    """The backend is not reached."""
    monkeypatch.setattr(store_backend, "_posted", lambda *_: None)
    methods = Methods(bundled(SYN_BACKEND_URL="http://b.example"), tiers=Tiers({"diff_assets": "enterprise"}))
    for tier in ("community", "pro", "enterprise"):
        heard = Heard(methods, revision, tier=tier)
        heard.say(request("list", "tools/list", {}, revision))
        for ident, (tool, arguments) in enumerate(GOOD):
            if tool in {"diff_assets", "populate_backend", "list_schemas"}:
                [found] = heard.say(call(ident, tool, arguments, revision, request_id='"\\'))
                _check_promise(tool, found["result"], revision)


def _check_promise(tool: str, result: Any, revision: str) -> None:
    """A failure owes nothing to the outputSchema, and keeps to it all the same."""
    envelope = json.loads(result["content"][0]["text"])
    assert ("structuredContent" in result) == (revision >= "2025-06-18")
    assert result.get("structuredContent", envelope) == envelope
    assert compile_schema(ResponseEnvelope.json_schema(TOOLS[tool].output)).faults(envelope).listed == ()


@every_revision
def test_every_answer_to_arguments_that_break_the_contract_is_right(methods: Methods, revision: str) -> None:
    """The judge has not seen the tools listed, so that it has nothing against the calls."""
    heard = Heard(methods, revision)
    for ident, (tool, arguments) in enumerate(BAD):
        [found] = heard.say(call(ident, tool, arguments, revision))
        if revision < "2025-11-25":
            assert found["error"]["code"] == -32602
        else:
            assert found["result"]["isError"] is True
            _check_promise(tool, found["result"], revision)
    [found] = heard.say(call("none", "nope", {}, revision))
    assert found["error"]["code"] == -32602
    assert heard.judge.open_requests(Party.CLIENT) == ()


@every_revision
def test_a_judge_that_knows_the_tools_blames_the_client_alone(methods: Methods, revision: str) -> None:
    """Where nothing is stopped, the server's refusals are heard by who knows what was wrong."""
    server, judge = AssetServer(methods), Conversation(mode="audit")
    for message in [*opening(revision), request("list", "tools/list", {}, revision)]:
        judge.hear(Party.CLIENT, frame_of(message))
        for each in server.respond(frame_of(message)):
            assert judge.hear(Party.SERVER, each).violations == ()
    for ident, (tool, arguments) in enumerate(BAD):
        frame = frame_of(call(ident, tool, arguments, revision))
        assert {each.rule for each in judge.hear(Party.CLIENT, frame).violations} == {"contract/input"}
        [refused] = server.respond(frame)
        assert judge.hear(Party.SERVER, refused).violations == ()


TONE = "resource://schemas/tone"
TEMPLATE = {"type": "ref/resource", "uri": "resource://schemas/{name}"}
PROMPT = {"type": "ref/prompt", "name": "write_asset"}
ARGUMENT = {"name": "name", "value": "t"}

OTHERS: list[tuple[str, dict[str, Any], bool]] = [
    ("ping", {}, True),
    ("server/discover", {}, True),
    ("tools/list", {}, True),
    ("tools/list", {"cursor": "7"}, True),
    ("tools/list", {"cursor": "999"}, False),
    ("tools/list", {"cursor": "é"}, False),
    ("resources/list", {}, True),
    ("resources/list", {"cursor": "1"}, True),
    ("resources/list", {"cursor": "-1"}, False),
    ("resources/templates/list", {}, True),
    ("resources/read", {"uri": TONE}, True),
    ("resources/read", {"uri": "resource://examples/tone.hum.json"}, True),
    ("resources/read", {"uri": "resource://examples/../../pyproject.toml"}, False),
    ("resources/read", {"uri": "file:///etc/passwd"}, False),
    ("completion/complete", {"ref": TEMPLATE, "argument": ARGUMENT}, True),
    ("completion/complete", {"ref": TEMPLATE, "argument": {"name": "name", "value": "zz"}}, True),
    ("completion/complete", {"ref": {**TEMPLATE, "uri": "resource://examples/{+path}"}, "argument": ARGUMENT}, False),
    ("completion/complete", {"ref": PROMPT, "argument": {"name": "schema", "value": "t"}}, True),
    ("completion/complete", {"ref": {**PROMPT, "name": "nope"}, "argument": ARGUMENT}, False),
    ("prompts/list", {}, True),
    ("prompts/get", {"name": "write_asset", "arguments": {"schema": "tone", "idea": "{é} ${x}"}}, True),
    ("prompts/get", {"name": "mend_asset", "arguments": {"schema": "tone"}}, False),
    ("prompts/get", {"name": "nope"}, False),
    ("tools/call", {"name": "list_schemas"}, True),
    ("tools/call", {"name": "list_schemas", "arguments": {}, "_meta": {"progressToken": "p"}}, True),
]
"""What else can be asked, and whether it has a result. A row counts in the revisions that have the method."""


@every_revision
def test_every_other_answer_is_what_the_revision_says(methods: Methods, revision: str) -> None:
    heard = Heard(methods, revision)
    for ident, (method, params, good) in enumerate(OTHERS):
        if method in methods_of(revision):
            [found] = heard.say(request(ident, method, params, revision))
            assert ("result" in found) is good, (method, params, found)
            if not good and method == "resources/read":
                code = -32002 if handshake(revision) else -32602
                assert (found["error"]["code"], found["error"]["data"]) == (code, params)
            elif not good:
                assert found["error"]["code"] == -32602
    assert heard.judge.open_requests(Party.CLIENT) == ()
    asked = {method for method, _, _ in OTHERS} | {"initialize"}
    params = {"uri": TONE, "name": "p", "level": "info", "taskId": "t", "notifications": {}}
    for method, known in methods_of(revision).items():
        if method not in asked and known.kind == "request" and "client" in known.senders:
            error = answer(opened(methods, revision), request(1, method, params, revision))["error"]
            assert error["code"] == -32601, method


@every_revision
def test_every_resource_that_is_listed_can_be_read_and_completed(methods: Methods, revision: str) -> None:
    heard, numbers = Heard(methods, revision), count()

    def ask(method: str, params: dict[str, Any]) -> Any:
        [found] = heard.say(request(next(numbers), method, params, revision))
        return found["result"]

    listed = ask("resources/list", {})["resources"]
    assert len(listed) == len(bundled().schemas) + len(bundled().examples)
    for resource in listed:
        [contents] = ask("resources/read", {"uri": resource["uri"]})["contents"]
        assert contents["uri"] == resource["uri"]
        assert json.loads(contents["text"])
    templates = [each["uriTemplate"] for each in ask("resources/templates/list", {})["resourceTemplates"]]
    assert templates == ["resource://schemas/{name}", "resource://examples/{+path}"]
    params = {"ref": TEMPLATE, "argument": {"name": "name", "value": "TO"}}
    assert ask("completion/complete", params)["completion"]["values"] == ["tone"]


def test_long_lists_come_in_pages(tmp_path: Path) -> None:
    heard = Heard(Methods(of_schemas(tmp_path, {f"{number}.json": {} for number in range(2 * PAGE + 1)})), LATEST)
    seen: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(3):
        [found] = heard.say(request(1, "resources/list", params, LATEST))
        seen += [each["uri"] for each in found["result"]["resources"]]
        params = {"cursor": found["result"].get("nextCursor", "")}
    assert len(seen) == len(set(seen)) == 2 * PAGE + 1
    assert params == {"cursor": ""}


def test_a_client_that_falls_back_to_the_handshake_is_answered_rightly(methods: Methods) -> None:
    """2026-07-28, basic/versioning: a client that finds no common revision there may still initialize."""
    heard = Heard(methods, LATEST)
    [found] = heard.say(request(1, "server/discover", {}, LATEST))
    assert set(found["result"]["supportedVersions"]) == set(REVISIONS)
    for message in opening("2025-11-25"):
        heard.say(message)
    assert heard.judge.revision == "2025-11-25"
    [found] = heard.say(call(1, "list_schemas", {}))
    assert handshake(heard.judge.revision)
    assert "resultType" not in found["result"]
