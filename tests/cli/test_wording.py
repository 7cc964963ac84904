"""What people read: the exact text of violations and hints that are easily misunderstood."""

import io
from typing import Any

from assay.base.verdict import Party, Verdict
from assay.cli.reports.check_findings import MessageCounts
from assay.cli.terminal.style import Style
from assay.cli.terminal.verdicts import Summary, title
from assay.engine.patterns import is_broken
from assay.spec.revisions import REVISIONS
from kit.rows import rows
from kit.talk import SEARCH, Talk, call, error, good, notification, request, result

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
REVISION_AT = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
UNSUPPORTED = "protocol/unsupported-revision"
TYPES = "one of array, boolean, integer, null, number, object, string, or an array of them"
ANSWER = {"jsonrpc": "2.0", "result": {}}


def first(verdict: Verdict) -> tuple[str, str]:
    """The first violation, and what to do about it."""
    wrong = verdict.violations[0]
    return str(wrong), wrong.hint


def listing(talk: Talk, *tools: dict[str, Any]) -> Verdict:
    """The verdict on a list of *tools*."""
    talk.client(request("list", "tools/list"))
    return talk.server(result("list", {"tools": list(tools)}))


def taking(schema: dict[str, Any]) -> dict[str, Any]:
    """A tool that takes a value of *schema*."""
    return {"name": "odd", "inputSchema": {"type": "object", "properties": {"value": schema}}}


# ── revisions and ids ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_revision_that_needs_a_handshake_is_named_as_such() -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}
    assert first(Talk().client(request(1, "server/discover", {"_meta": meta}))) == (
        f'{REVISION_AT}: expected 2026-07-28, which needs no handshake, found "2025-11-25" [{UNSUPPORTED}]',
        "2025-11-25 needs initialize; name 2026-07-28 here.",
    )


def test_the_same_is_said_of_a_request_that_opens_the_conversation() -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}
    assert first(Talk().client(request(1, "tools/list", {"_meta": meta}))) == (
        "/method: expected initialize, found tools/list [protocol/before-initialize]",
        "2025-11-25 needs initialize; name 2026-07-28 here.",
    )


def test_progress_that_does_not_rise_is_to_rise() -> None:
    talk = Talk().opened()
    talk.client(request(1, "tools/list", {"_meta": {"progressToken": "p"}}))
    talk.server(notification("notifications/progress", {"progressToken": "p", "progress": 2}))
    assert first(talk.server(notification("notifications/progress", {"progressToken": "p", "progress": 2}))) == (
        "/params/progress: expected more than 2, found 2 [protocol/progress]",
        "Increase progress with each notification, even if the total is unknown.",
    )


def test_a_page_of_the_specification_is_named_where_the_revision_has_it() -> None:
    talk = Talk(revision="2026-07-28")
    talk.client(request(1, "tools/list", {"_meta": META}))
    lost = talk.server(notification("notifications/progress", {"progressToken": "p", "progress": 2}))
    assert lost.violations[0].source == "MCP 2026-07-28, basic/patterns/progress"
    older = Talk().opened().server(notification("notifications/progress", {"progressToken": "p", "progress": 2}))
    assert older.violations[0].source == "MCP 2025-11-25, basic/utilities/progress"


def test_an_unknown_revision_is_answered_with_those_there_are() -> None:
    meta = {**META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    assert first(Talk().client(request(1, "server/discover", {"_meta": meta}))) == (
        f'{REVISION_AT}: expected one of {", ".join(REVISIONS)}, found "2030-01-01" [{UNSUPPORTED}]',
        "Use one of the revisions listed in the error's data.",
    )


@rows(
    ("ident", "text"),
    [
        (5, "/method: expected notifications/initialized as a notification, found a request [protocol/method]"),
        (None, "/id: expected no id in a notification, found null [envelope/id]"),
    ],
)
def test_a_notification_with_an_id_is_to_leave_it_out(ident: Any, text: str) -> None:
    found, hint = first(Talk().opened().client(request(ident, "notifications/initialized")))
    assert found == text
    assert hint.startswith("Remove the id: ")


def test_a_request_with_a_bad_id_is_to_be_numbered() -> None:
    assert first(Talk().opened().client(request(None, "ping"))) == (
        "/id: expected a string or an integer, found null [envelope/id]",
        "Use a counter or a UUID string as the id.",
    )


@rows(
    ("answer", "text"),
    [
        (result(None, {}), "/id: expected a string or an integer, found null [envelope/id]"),
        (
            {"jsonrpc": "2.0", "result": {}},
            "the message: expected the member id, a string or an integer, found nothing [envelope/id]",
        ),
        (error(1.5, -32603), "/id: expected a string or an integer, found 1.5 [envelope/id]"),
    ],
)
def test_an_answer_with_a_bad_id_is_to_echo_that_of_the_request(answer: dict[str, Any], text: str) -> None:
    talk = Talk().opened()
    good(talk.client(request(1, "ping")))
    assert first(talk.server(answer)) == (text, "Echo the id of the request unchanged.")


@rows("message", [result(None, {}), {"jsonrpc": "2.0", "result": {}}], ids=["null", "missing"])
@rows("mode", ["enforce", "audit"])
def test_the_answer_to_a_notification_is_named_as_such(message: dict[str, Any], mode: str) -> None:
    hint = "Echo the id of the request unchanged. Do not answer notifications (messages without an id)."
    assert first(Talk(mode=mode).opened().server(message))[1] == hint


def test_an_error_in_answer_to_a_notification_is_named_as_such() -> None:
    note = " Do not answer notifications (messages without an id)."
    for revision in ("2025-06-18", "2025-11-25"):
        talk = Talk().opened(revision)
        assert first(talk.server(error(None, -32601)))[1].endswith(note)
        good(talk.client(request(1, "ping")))
        assert not first(talk.server(error(None, -32601)))[1].endswith(note)


@rows(
    ("client", "hint"),
    [
        (True, 'The server must declare "tools" in the capabilities of its initialize result.'),
        (False, 'The client must declare "roots" in the capabilities of its initialize request.'),
    ],
    ids=["client-asks", "server-asks"],
)
def test_a_missing_capability_is_to_be_declared_by_its_owner(client: bool, hint: str) -> None:
    talk = Talk().opened(client={}, server={})
    heard = talk.client(request(1, "tools/list")) if client else talk.server(request(1, "roots/list"))
    assert first(heard)[1] == hint


def test_a_mode_that_the_client_did_not_declare_is_to_be_declared_by_the_client() -> None:
    params = {"mode": "url", "message": "a", "url": "https://example.com", "elicitationId": "1"}
    heard = Talk().opened(client={"elicitation": {"form": {}}}).server(request(1, "elicitation/create", params))
    assert first(heard)[1] == 'The client must declare "elicitation.url" in the capabilities of its initialize request.'


def test_a_missing_capability_without_a_handshake_is_declared_in_another_place() -> None:
    talk = Talk()
    good(talk.client(request(1, "server/discover", {"_meta": META})))
    hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    good(talk.server(result(1, {"supportedVersions": ["2026-07-28"], "capabilities": {}, **hints})))
    heard = talk.client(request(2, "tools/call", {"name": "a", "_meta": META}))
    assert first(heard)[1] == 'The server must declare "tools" in the capabilities of its server/discover result.'
    wanted = {"method": "roots/list", "params": {}}
    answer = {"resultType": "input_required", "inputRequests": {"a": wanted}}
    [wrong] = talk.server(result(2, answer)).violations
    where = "io.modelcontextprotocol/clientCapabilities in params._meta"
    assert wrong.hint == f'The client must declare "roots" in {where}.'


@rows(
    ("asked", "answered", "hint"),
    [
        (7, "7", 'Echo the id of the request unchanged: 7, not "7".'),
        ("7", 7, 'Echo the id of the request unchanged: "7", not 7.'),
        (7, 8, 'Echo the id of the request unchanged, with its type: 1 and "1" are two ids.'),
    ],
)
def test_an_answer_with_another_id_is_shown_with_the_one_it_may_mean(asked: Any, answered: Any, hint: str) -> None:
    talk = Talk().opened()
    talk.client(request(asked, "ping"))
    assert first(talk.server(result(answered, {})))[1] == hint


# ── what a server prints ─────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("line", "found"),
    [
        (b"library server 0.3 starting on port 8000", 'the text "library server 0.3 starting on port 8000"'),
        (b"[INFO] 2026-11-16 ready", 'the text "[INFO] 2026-11-16 ready"'),
        (b"{config} loaded", 'the text "{config} loaded"'),
        (b"\x1b[32mready\x1b[0m", 'the text "·[32mready·[0m"'),
        (b"x" * 200, f'the text "{"x" * 79}…"'),
        (b"caf\xe9 ready", 'the byte 0xe9 at position 3 of "caf\ufffd ready"'),
        (b'{"jsonrpc":"2.0","id" 1}', "unexpected character, expected ':' after key at character 22"),
        (b'{"jsonrpc":"2.0","id":1,"result":{},}', "trailing comma is not allowed at character 35"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}', "NaN or Infinity at character 38"),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":1e999}}', "one that is too large at character 38"),
    ],
)
def test_a_line_that_is_no_message_is_shown(line: bytes, found: str) -> None:
    verdict = Talk().opened().server(line)
    assert verdict.violations[0].found == found


# ── schemas of tools ─────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("schema", "text"),
    [
        ({"type": "strnig"}, f'expected {TYPES}, found the string "strnig" [contract/schema]'),
        ({"type": ["string", "nul"]}, f'expected {TYPES}, found an array of "string" and "nul" [contract/schema]'),
        ({"required": "a"}, 'expected an array of property names, found the string "a" [contract/schema]'),
        ({"required": ["a", 1]}, "expected the name of a property, once, found 1 [contract/schema]"),
        ({"minLength": -1}, "expected an integer, at least 0, found -1 [contract/schema]"),
        ({"anyOf": []}, "expected an array of at least one schema, found an empty array [contract/schema]"),
        ({"properties": {"required": {"type": 5}}}, "found 5 [contract/schema]"),
    ],
)
def test_a_schema_that_is_none_is_shown_with_what_the_keyword_may_hold(schema: dict[str, Any], text: str) -> None:
    assert first(listing(Talk().opened(), taking(schema)))[0].endswith(text)


@rows("pattern", ["(", "a)", "[a", "*a", "a{3,1}", "a\\", "(?:a"])
def test_a_broken_pattern_is_not_a_valid_regular_expression(pattern: str) -> None:
    found = listing(Talk().opened(), taking({"type": "string", "pattern": pattern})).violations[0].found
    assert found == f'"{pattern}", which is not a valid regular expression'


@rows(
    "pattern",
    ["", "[^]", "[]", "^(?=a)b$", "(?<year>[0-9]{4})", r"(a)\1", "a*?b+?c{2,}?", "a++", r"[\]]", "{", "a{,3}", "[[a]"],
)
def test_a_pattern_of_another_standard_is_not_called_broken(pattern: str) -> None:
    assert not is_broken(pattern)


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────────────

MEND = "Correct the named argument; tools/list has the schema."


@rows(
    ("schema", "value", "hint"),
    [
        ("integer", "5", 'Send the value itself, not as text: 5, not "5".'),
        ("integer", "12", 'Send the value itself, not as text: 12, not "12".'),
        ("number", "1.5", 'Send the value itself, not as text: 1.5, not "1.5".'),
        ("boolean", "True", 'Send the value itself, not as text: true, not "True".'),
        ("integer", "five", MEND),
        ("integer", "1.5", MEND),
        ("boolean", "5", MEND),
        ("boolean", "yes", MEND),
        ("integer", "true", MEND),
        ("array", "[1]", "Send the JSON value itself, not JSON inside a string."),
        ("array", "[draft]", MEND),
        ("array", "{}", MEND),
        ("object", '{"a":1}', "Send the JSON value itself, not JSON inside a string."),
        ("string", None, "Leave an optional argument out instead of sending null."),
        ("string", 5, MEND),
    ],
)
def test_a_hint_uses_the_value_that_was_sent_or_says_nothing(schema: str, value: Any, hint: str) -> None:
    talk = Talk().opened().listed(taking({"type": schema}))
    assert first(talk.client(call(1, "odd", {"value": value})))[1] == hint


def test_a_hint_for_a_result_speaks_of_properties() -> None:
    talk = Talk().opened().listed(SEARCH)
    talk.client(call(1, "search", {"words": "a"}))
    verdict = talk.server(result(1, {"content": [], "structuredContent": {"hits": None}}))
    assert first(verdict)[1] == "Leave an optional property out instead of sending null."


@rows(
    ("method", "answer", "definition"),
    [
        ("tools/list", {"tools": [{"name": "a"}]}, "Tool"),
        ("tools/list", {}, "ListToolsResult"),
        ("prompts/list", {"prompts": [{"title": "a"}]}, "Prompt"),
        ("resources/list", {"resources": [{"name": "a"}]}, "Resource"),
    ],
)
def test_a_hint_names_the_definition_that_the_fault_is_in(method: str, answer: Any, definition: str) -> None:
    talk = Talk().opened()
    talk.client(request(1, method))
    hint = first(talk.server(result(1, answer)))[1]
    assert hint == f"`assay schemas show 2025-11-25 {definition}` shows the expected shape."


def test_what_is_cancelled_or_announced_in_vain_is_shown() -> None:
    talk = Talk().opened()
    assert first(talk.client(notification("notifications/cancelled", {"requestId": 77})))[0] == (
        "/params/requestId: expected the id of an open request of its own, found 77 [protocol/cancel]"
    )
    assert first(talk.server(notification("notifications/progress", {"progressToken": "t", "progress": 1})))[0] == (
        '/params/progressToken: expected the token of an open request, found "t" [protocol/progress]'
    )


# ── what a message is called ─────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("message", "text"),
    [
        (request(1, "tools/call", {"name": "search", "arguments": 5}), "tools/call search #1"),
        ({"id": 1, "method": "tools/call", "params": {"name": "search"}}, "tools/call search #1"),
        (request(1, "prompts/get", {"name": "weekly", "arguments": 5}), "prompts/get weekly #1"),
        (request(1, "resources/read", {"uri": "notes.txt"}), "resources/read notes.txt #1"),
        (request(1, "tools/call", {"name": 5}), "tools/call #1"),
        (request(1, "tools/call", [5]), "tools/call #1"),
        (request(1, 5), "request #1"),  # type: ignore[arg-type]  # what a client may send
        (result(9, {}), "result #9"),
        (error(None, -32600), "error without an id"),
        ({"jsonrpc": "2.0", "error": {"code": -32600, "message": "No"}}, "error without an id"),
    ],
)
def test_a_refused_message_is_called_by_what_it_asks_for(message: dict[str, Any], text: str) -> None:
    assert title(Talk().opened().client(message)) == text


def test_an_answer_that_never_comes_names_the_tool() -> None:
    talk = Talk().opened().listed(SEARCH)
    talk.client(call(1, "search", {"words": "a"}))
    assert [title(each) for each in talk.conversation.end(Party.SERVER)] == ["never answered: tools/call search #1"]


@rows(
    ("tools", "text"),
    [
        ([], "a listed tool, but the list is empty"),
        (["a"], "a listed tool: a"),
        (["a", "b"], "a listed tool: a or b"),
        (["a", "b", "c"], "a listed tool: a, b or c"),
        (["a", "b", "c", "d"], "one of 4 listed tools"),
        (["find_books"], "a listed tool, such as find_books"),
    ],
)
def test_a_call_of_an_unknown_tool_is_shown_with_those_there_are(tools: list[str], text: str) -> None:
    talk = Talk().opened().listed(*({"name": each, "inputSchema": {"type": "object"}} for each in tools))
    assert talk.client(call(1, "find_book", {})).violations[0].expected == text


def test_counts_of_thousands_are_grouped() -> None:
    summary, talk = Summary(), Talk()
    for _ in range(1_000):
        summary.add(talk.server("no object"))
    counts = MessageCounts(ok=1_234_567, blocked=1_000)
    lines = list(summary.lines(counts, None, Style(io.StringIO(), {})))
    assert lines == ["1,235,567 messages: 1,234,567 ok, 1,000 blocked", "  1,000 × envelope/message"]
