"""What people read: the exact text of violations and hints that are easily misunderstood."""

import io
from collections import Counter
from typing import Any

from assay.cli.checking.evidence import FileEnd
from assay.cli.reports.result import ReportOptions
from assay.cli.reports.streams import TextReport
from assay.cli.terminal.style import Style
from assay.model.verdict import Party, Verdict
from assay.records.outcomes import title
from assay.schema.patterns import is_broken
from assay.spec.revisions import REVISIONS
from kit.rows import rows
from kit.talk import ALL_SERVER, Talk, call, error, notification, request, result

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
REVISION_AT = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
UNSUPPORTED = "protocol/unsupported-revision"
TYPES = "one of array, boolean, integer, null, number, object, string, or an array of them"


def first(verdict: Verdict) -> tuple[str, str]:
    """The first violation, and what to do about it."""
    wrong = verdict.violations[0]
    return str(wrong), wrong.hint


def heard(talk: Talk, said: list[tuple[Party, Any]]) -> Verdict:
    """The verdict on the last message."""
    return [talk.client(message) if party is Party.CLIENT else talk.server(message) for party, message in said][-1]


def listing(talk: Talk, *tools: dict[str, Any]) -> Verdict:
    """The verdict on a list of *tools*."""
    talk.client(request("list", "tools/list"))
    return talk.server(result("list", {"tools": list(tools)}))


def taking(schema: dict[str, Any]) -> dict[str, Any]:
    """A tool that takes a value of *schema*."""
    return {"name": "odd", "inputSchema": {"type": "object", "properties": {"value": schema}}}


# ── ids, capabilities, progress ──────────────────────────────────────────────────────────────────────────────────────

C, S = Party.CLIENT, Party.SERVER
ASKED = (C, request(1, "ping"))
LISTING = (C, request(1, "tools/list", {"_meta": {"progressToken": "p"}}))
PROGRESS = (S, notification("notifications/progress", {"progressToken": "p", "progress": 2}))
URL_MODE = request(1, "elicitation/create", {"mode": "url", "message": "a", "url": "https://a.b", "elicitationId": "1"})
ECHO = "Echo the id of the request unchanged"
CLOSING = " Do not answer notifications (messages without an id)."
DECLARE = 'must declare "{}" in the capabilities of its initialize'


def without_handshake(revision: str) -> dict[str, Any]:
    return request(1, "server/discover", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": revision}})


@rows(
    "named, expected, hint",
    [
        ("2025-11-25", "2026-07-28, which needs no handshake", "2025-11-25 needs initialize; name 2026-07-28 here."),
        ("2030-01-01", f"one of {', '.join(REVISIONS)}", "Use a revision listed in the error's data."),
    ],
)
def test_a_revision_that_cannot_be_spoken_is_shown_with_the_remedy(named: str, expected: str, hint: str) -> None:
    text = f'{REVISION_AT}: expected {expected}, found "{named}" [{UNSUPPORTED}]'
    assert first(Talk().client(without_handshake(named))) == (text, hint)


def test_where_there_is_no_handshake_capabilities_and_revisions_are_named_in_another_place() -> None:
    opening = {**without_handshake("2025-11-25"), "method": "tools/list"}
    assert first(Talk().client(opening))[1] == "2025-11-25 needs initialize; name 2026-07-28 here."
    talk = Talk()
    talk.client(without_handshake("2026-07-28"))
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    talk.server(result(1, {"supportedVersions": ["2026-07-28"], "capabilities": {}, **cached}))
    verdict = talk.client(request(2, "tools/call", {"name": "a", "_meta": META}))
    assert first(verdict)[1] == 'The server must declare "tools" in the capabilities of its server/discover result.'
    wanted = {"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list", "params": {}}}}
    where = "io.modelcontextprotocol/clientCapabilities in params._meta"
    assert first(talk.server(result(2, wanted)))[1] == f'The client must declare "roots" in {where}.'


@rows(
    "said, text, hint",
    [
        (
            [LISTING, PROGRESS, PROGRESS],
            "/params/progress: expected more than 2, found 2 [protocol/progress]",
            "Increase progress with each notification, even if the total is unknown.",
        ),
        ([PROGRESS], '/params/progressToken: expected the token of an open request, found "p" [protocol/progress]', ""),
        (
            [(C, notification("notifications/cancelled", {"requestId": 77}))],
            "/params/requestId: expected the id of an open request from the sender, found 77 [protocol/cancel]",
            "",
        ),
        (
            [(C, request(5, "notifications/initialized"))],
            "/method: expected notifications/initialized as a notification, found a request [protocol/method]",
            "Remove the id: ",
        ),
        (
            [(C, request(None, "notifications/initialized"))],
            "/id: expected no id in a notification, found null [envelope/id]",
            "Remove the id: ",
        ),
        (
            [(C, request(None, "ping"))],
            "/id: expected a string or an integer, found null [envelope/id]",
            "Use a counter or a UUID string as the id.",
        ),
        (
            [ASKED, (S, {"jsonrpc": "2.0", "result": {}})],
            "the message: expected the member id, a string or an integer, found nothing [envelope/id]",
            f"{ECHO}.",
        ),
        ([ASKED, (S, error(1.5, -32603))], "/id: expected a string or an integer, found 1.5 [envelope/id]", f"{ECHO}."),
        (
            [(S, result(None, {}))],
            "/id: expected a string or an integer, found null [envelope/id]",
            ECHO + "." + CLOSING,
        ),
        ([ASKED, (S, result("1", {}))], None, f'{ECHO}: 1, not "1".'),
        ([ASKED, (S, result(8, {}))], None, f'{ECHO}, with its type: 1 and "1" are two ids.'),
        ([LISTING], None, f"The server {DECLARE.format('tools')} result."),
        ([(S, request(1, "roots/list"))], None, f"The client {DECLARE.format('roots')} request."),
        ([(S, URL_MODE)], None, f"The client {DECLARE.format('elicitation.url')} request."),
    ],
)
def test_a_wrong_message_is_shown_with_the_remedy(said: Any, text: str | None, hint: str) -> None:
    server = {} if said == [LISTING] else ALL_SERVER
    found, remedy = first(heard(Talk().opened(client={"elicitation": {"form": {}}}, server=server), said))
    assert text in {None, found}
    assert remedy.startswith(hint)
    assert (CLOSING in remedy) is (CLOSING in hint)


@rows("revision", ["2025-06-18", "2025-11-25"])
def test_an_error_in_answer_to_a_notification_is_named_as_such(revision: str) -> None:
    talk = Talk().opened(revision)
    assert first(talk.server(error(None, -32601)))[1].endswith(CLOSING)
    talk.client(request(1, "ping"))
    assert not first(talk.server(error(None, -32601)))[1].endswith(CLOSING)


@rows(
    ("method", "answer", "definition"),
    [
        ("tools/list", {"tools": [{"name": "a"}]}, "Tool"),
        ("tools/list", {}, "ListToolsResult"),
        ("resources/list", {"resources": [{"name": "a"}]}, "Resource"),
    ],
)
def test_a_hint_names_the_definition_that_the_fault_is_in(method: str, answer: Any, definition: str) -> None:
    verdict = heard(Talk().opened(), [(C, request(1, method)), (S, result(1, answer))])
    assert first(verdict)[1] == f"`assay schemas show 2025-11-25 {definition}` shows the expected shape."


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
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":1e999}}', "a number that is too large at character 38"),
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
        ({"minLength": -1}, "expected an integer of at least 0, found -1 [contract/schema]"),
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
        ("number", "1.5", 'Send the value itself, not as text: 1.5, not "1.5".'),
        ("boolean", "True", 'Send the value itself, not as text: true, not "True".'),
        ("integer", "five", MEND),
        ("boolean", "5", MEND),
        ("array", "[1]", "Send the JSON value itself, not JSON inside a string."),
        ("array", "[draft]", MEND),
        ("object", '{"a":1}', "Send the JSON value itself, not JSON inside a string."),
        ("string", None, "Leave an optional argument out instead of sending null."),
        ("string", 5, MEND),
    ],
)
def test_a_hint_uses_the_value_that_was_sent_or_says_nothing(schema: str, value: Any, hint: str) -> None:
    talk = Talk().opened().listed(taking({"type": schema}))
    assert first(talk.client(call(1, "odd", {"value": value})))[1] == hint


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
    written: list[str] = []
    report = TextReport(ReportOptions(), written.append, Style(io.StringIO(), {}))
    report.end(FileEnd("a.jsonl", Counter(ok=1_234_567, blocked=1_000)))
    assert written == ["1,235,567 messages: 1,234,567 ok, 1,000 blocked\n"]
