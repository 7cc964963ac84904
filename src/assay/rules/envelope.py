"""``envelope/``: JSON-RPC messages. Data only."""

from typing import Final

from assay.rules.rule import BASIC, OURS, REFUSE, REPORT, Rule

ROWS: Final[tuple[Rule, ...]] = (
    Rule(
        id="envelope/message",
        asks="A message is a JSON object.",
        why="JSON-RPC defines no other messages, except batches in revisions that have them.",
        source="JSON-RPC 2.0, 4; " + BASIC,
        fix="Send a request, a notification, a result or an error.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example="42",
    ),
    Rule(
        id="envelope/batch",
        asks="A batch is sent only in a revision that has batches, and is not empty.",
        why="Only revision 2025-03-26 has batches; in other revisions the receiver does not expect an array.",
        source=BASIC,
        fix="Send the messages one by one.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example="[]",
    ),
    Rule(
        id="envelope/jsonrpc",
        asks='Every message has "jsonrpc": "2.0".',
        why="The member distinguishes version 2.0 from 1.0, which has other rules.",
        source="JSON-RPC 2.0, 4; " + BASIC,
        fix='Add "jsonrpc": "2.0", as a string.',
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example='{"id":1,"method":"ping"}',
    ),
    Rule(
        id="envelope/id",
        asks="The id of a request is a string or an integer, never null; an answer carries the id of its request.",
        why="Answers are matched to requests by id alone; null, booleans and fractions match nothing.",
        source=BASIC,
        fix="Use a counter or a UUID string as the id. Notifications have no id.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example='{"jsonrpc":"2.0","id":null,"method":"ping"}',
    ),
    Rule(
        id="envelope/null-id",
        asks="Up to 2025-06-18 an error has the id of its request, not null.",
        why="JSON-RPC requires null if the request could not be parsed, but the schema of these revisions forbids it.",
        source="JSON-RPC 2.0, 5; " + BASIC,
        fix="Send the id of the request, unless the request could not be parsed.",
        action=REPORT,
        code="INVALID_ENVELOPE",
        example='{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
        strict=REFUSE,
    ),
    Rule(
        id="envelope/method",
        asks="The method of a request or notification is a string that is not empty.",
        why="Without a method the receiver cannot handle the message.",
        source="JSON-RPC 2.0, 4",
        fix="Send the method's name as a string.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example='{"jsonrpc":"2.0","id":1,"method":5}',
    ),
    Rule(
        id="envelope/params",
        asks="The params are an object, or are left out.",
        why="MCP passes parameters by name; it does not allow JSON-RPC's positional arrays.",
        source=BASIC,
        fix="Send an object; leave params out rather than sending null.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example='{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
    ),
    Rule(
        id="envelope/members",
        asks="A message has exactly one of method, result and error.",
        why="With two of them, one parser reads a request and another an answer.",
        source="JSON-RPC 2.0, 5",
        fix="Remove the member that does not belong; null does not count as absent.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example='{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}',
    ),
    Rule(
        id="envelope/look-alike-key",
        asks=(
            "No key of a message or its error resembles a defined key without being equal: Method, paramſ, "
            "method\\u0000."
        ),
        why=(
            "A parser that ignores case reads both as the same key and keeps the last one: the message has two "
            "meanings."
        ),
        source=OURS,
        fix="Spell the key as the specification does, and remove the other one.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example='{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}',
    ),
    Rule(
        id="envelope/error",
        asks="An error has an integer code and a message that is a string.",
        why="Clients show the message and act on the code.",
        source="JSON-RPC 2.0, 5.1; " + BASIC,
        fix="Send the error as an object with code and message; details go into data.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example='{"jsonrpc":"2.0","id":1,"error":"it failed"}',
    ),
    Rule(
        id="envelope/result",
        asks="A result is an object.",
        why="Every MCP result is an object, so that it can carry _meta and new members.",
        source=BASIC,
        fix="Answer with an object; with an empty one if there is nothing to return.",
        action=REFUSE,
        code="INVALID_ENVELOPE",
        example='{"jsonrpc":"2.0","id":1,"result":"done"}',
    ),
)
