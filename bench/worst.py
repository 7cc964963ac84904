"""
The worst messages that we know of: what one costs to judge, in CPU time and in memory, under both modes.

Each is judged in a process of its own, in a conversation that was opened as usual. The promise is 250 ms and 30 times
the message + 96 MiB, whatever is in it. `python bench/worst.py 16` makes messages of 16 MiB, without a number of 4.
"""

# ruff: noqa: E501 - a table, a message a line
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple

import orjson

from assay.judge.conversation import Conversation
from assay.model.large_frames import more_than
from assay.model.limits import DEFAULT, Limits
from assay.model.verdict import Party
from assay.records.moments import Moment
from assay.records.record import RunIdentity, record_of

PROMISED_MS = 250
PROMISED_TIMES, PROMISED_MIB = 30, 96
FRAME_BYTES = 16 << 20


_ANY: Any = {"type": "object"}


class Case(NamedTuple):
    """One bad message, and what was said before it."""

    party: Party
    frame: bytes
    schema: Any = _ANY
    """The inputSchema of the one tool that there is, and its outputSchema where a server speaks."""
    asked: str = ""
    """The method of the client's open request, 2, that a server answers."""
    revision: str = "2025-11-25"


def filled(head: bytes, unit: bytes, tail: bytes, size: int, between: bytes = b",") -> bytes:
    """As many units as fit into a frame of *size* bytes."""
    count = max(1, (size - len(head) - len(tail)) // (len(unit) + len(between)))
    return head + between.join([unit] * count) + tail


def numbered(head: bytes, unit: bytes, tail: bytes, size: int) -> bytes:
    """The same with a number in each unit, so that no two are alike."""
    count = max(1, (size - len(head) - len(tail)) // (len(unit) + 6))
    return head + b",".join([unit % number for number in range(count)]) + tail


_CALL = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":{"x":'
_RESULT = b'{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"x":'
_TOOLS = b'{"jsonrpc":"2.0","id":2,"result":{"tools":['


def call(unit: bytes, size: int, schema: Any = None, **more: Any) -> Case:
    """A call with an array of units as its argument."""
    return Case(Party.CLIENT, filled(_CALL + b"[", unit, b"]}}}", size), of_x(schema), **more)


def of_x(schema: Any) -> Any:
    """A schema for the member x; anything at all where there is none."""
    if schema is None:
        return {"type": "object"}
    return {"type": "object", "properties": {"x": schema}, "$defs": schema.get("$defs", {})}


def answer(frame: bytes, schema: Any = None, asked: str = "tools/call", **more: Any) -> Case:
    """An answer of the server, to a call unless *asked* says something else."""
    return Case(Party.SERVER, frame, of_x(schema), asked, **more)


def content(unit: bytes, size: int, schema: Any = None) -> Case:
    """A result with an array of units in its structured content."""
    return answer(filled(_RESULT + b"[", unit, b"]}}}", size), schema)


def raw(frame: bytes, party: Party = Party.CLIENT, **more: Any) -> Case:
    """Any frame at all."""
    return Case(party, frame, **more)


_TOOL = b'{"name":"n%d","inputSchema":{"type":"object"}}'
_FILTER: Any = {
    "$defs": {
        "f": {
            "anyOf": [
                {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["and"]},
                {"type": "object", "properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/f"}}}, "required": ["or"]},
                {"type": "object", "properties": {"not": {"$ref": "#/$defs/f"}}, "required": ["not"]},
                {"type": "object", "properties": {"eq": {"type": "integer"}}, "required": ["eq"], "additionalProperties": False},
            ]
        }
    },
    "type": "array",
    "items": {"$ref": "#/$defs/f"},
}  # fmt: skip
_INTEGERS: Any = {"type": "array", "items": {"allOf": [{"type": "integer"}] * 74}}
_PATTERNS: Any = {
    "additionalProperties": False,
    "patternProperties": {f"^k{n}[0-9]*$": {"type": "integer"} for n in range(10)},
}
_BIG_SCHEMA = orjson.dumps(
    {"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": f"^[a-z]{{{n % 9}}}$"} for n in range(60)}}
)

CASES: dict[str, Callable[[int], Case]] = {
    # ── read ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    "too many integers": lambda size: call(b"1", size),
    "too many objects and \\u003a": lambda size: raw(filled(_CALL + b'["\\u003a",', b"{}", b"]}}}", size)),
    "too many strings with commas": lambda size: call(b'","', size),
    "integers": lambda size: call(b"1", size),
    "integers, answered": lambda size: content(b"1", size),
    "objects": lambda size: call(b"{}", size),
    "objects and \\u003a": lambda size: raw(filled(_CALL + b'["\\u003a",', b"{}", b"]}}}", size)),
    "arrays in arrays": lambda size: call(b"[[[[]]]]", size),
    "arrays, 100 deep": lambda size: call(b"[" * 100 + b"]" * 100, size),
    "opening brackets": lambda size: raw(b"[" * size),
    "floats": lambda size: call(b"1.5e-7", size),
    "long floats": lambda size: call(b"1." + b"7" * 300 + b"e-9", size),
    "integers of 4,000 digits": lambda size: call(b"9" * 4000, size),
    "integers of 20 digits": lambda size: call(b"12345678901234567890", size),
    "strings": lambda size: call(b'"a"', size),
    "escapes": lambda size: call(b'"' + b"\\u00e9" * 1000 + b'"', size),
    "one string of escapes": lambda size: raw(_CALL + b'"' + b"\\u003a" * ((size - 200) // 6) + b'"}}}'),
    "one string": lambda size: raw(_CALL + b'"' + b"," * (size - 200) + b'"}}}'),
    "one key": lambda size: raw(_CALL + b'{"' + b"k" * (size - 200) + b'":1}}}}'),
    "one string of other letters": lambda size: raw(_CALL + b'"' + "\U0001f600".encode() * ((size - 200) // 4) + b'"}}}'),
    "one wide letter": lambda size: raw(_CALL + b'"' + b"a" * (size - 200) + "\U0001f600".encode() + b'"}}}'),
    "keys": lambda size: raw(numbered(_CALL + b"{", b'"k%d":1', b"}}}}", size)),
    "keys and spaces": lambda size: raw(numbered(_CALL + b"{", b'"k%d" : 1', b"}}}}", size)),
    "keys and \\u003a": lambda size: raw(numbered(_CALL + b'{"\\u003a":1,', b'"k%d":1', b"}}}}", size)),
    "a key twice, at the end": lambda size: raw(numbered(_CALL + b"{", b'"k%d":1', b',"k1":2}}}}', size)),
    "a key twice, in objects": lambda size: raw(filled(_CALL + b"[", b'{"a":1}', b',{"b":1,"b":2}]}}}', size)),
    "white space": lambda size: raw(b" " * (size - 1) + b"x"),
    "no JSON at its end": lambda size: raw(filled(_CALL + b"[", b"1", b",]}}}", size)),
    "half a letter at its end": lambda size: raw(filled(_CALL + b'["', b"1", b'\xff"]}}}', size)),
    "id 1.0 at the end": lambda size: raw(filled(b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t","arguments":{"x":[', b"1.5", b']}},"id":7.0}', size)),
    "id -0 in the middle": lambda size: raw(filled(b'{"jsonrpc":"2.0","params":{"name":"t","arguments":{"x":[', b"[]", b']}},"id":-0,"method":"tools/call"}', size)),
    "id 1.0, answered": lambda size: answer(filled(b'{"result":{"content":[],"structuredContent":{"x":[', b"1", b']}},"id":2.0,"jsonrpc":"2.0"}', size)),
    # ── judge ────────────────────────────────────────────────────────────────────────────────────────────────────────
    "74 × allOf": lambda size: call(b"1", size, _INTEGERS),
    "74 × allOf, answered": lambda size: content(b"1", size, _INTEGERS),
    "74 × allOf, the last is wrong": lambda size: Case(Party.CLIENT, filled(_CALL + b"[", b"1", b',"a"]}}}', size), {"type": "object", "properties": {"x": _INTEGERS}}),
    "20 × allOf": lambda size: call(b"1", size, {"items": {"allOf": [{"type": "integer"}] * 20}}),
    "20 × allOf, all wrong": lambda size: call(b"1", size, {"items": {"allOf": [{"type": "string"}] * 20}}),
    "8 × allOf, the last is wrong": lambda size: Case(Party.CLIENT, filled(_CALL + b"[", b"1", b',"a"]}}}', size), {"type": "object", "properties": {"x": {"items": {"allOf": [{"type": "integer"}] * 8}}}}),
    "unique integers": lambda size: Case(Party.CLIENT, numbered(_CALL + b"[", b"%d", b"]}}}", size), {"type": "object", "properties": {"x": {"uniqueItems": True}}}),
    "unique floats": lambda size: Case(Party.CLIENT, numbered(_CALL + b"[", b"%d.5", b"]}}}", size), {"type": "object", "properties": {"x": {"uniqueItems": True}}}),
    "unique strings": lambda size: Case(Party.CLIENT, numbered(_CALL + b"[", b'"%d"', b"]}}}", size), {"type": "object", "properties": {"x": {"uniqueItems": True}}}),
    "unique objects": lambda size: Case(Party.CLIENT, numbered(_CALL + b"[", b'{"a":%d}', b"]}}}", size), {"type": "object", "properties": {"x": {"uniqueItems": True}}}),
    "enum of numbers": lambda size: call(b"999", size, {"items": {"enum": list(range(1000))}}),
    "enum of objects": lambda size: call(b'{"a":99}', size, {"items": {"enum": [{"a": n} for n in range(100)]}}),
    "const of 100 numbers": lambda size: call(orjson.dumps(list(range(100))), size, {"items": {"const": list(range(100))}}),
    "patternProperties": lambda size: Case(Party.CLIENT, numbered(_CALL + b"{", b'"k9%d":1', b"}}}}", size), {"type": "object", "properties": {"x": _PATTERNS}}),
    "propertyNames": lambda size: Case(Party.CLIENT, numbered(_CALL + b"{", b'"k9%d":1', b"}}}}", size), {"type": "object", "properties": {"x": {"propertyNames": {"pattern": "^[a-z][0-9]+$", "maxLength": 30}}}}),
    "a pattern and long text": lambda size: Case(Party.CLIENT, _CALL + b'"' + b"ab" * ((size - 200) // 2) + b'"}}}', {"type": "object", "properties": {"x": {"pattern": "^(a|b)*$", "maxLength": FRAME_BYTES}}}),
    "a filter, wrong": lambda size: call(b'{"and":[{"or":[{"eq":"x"}]}]}', size, _FILTER),
    "a filter, 60 deep": lambda size: call(b'{"and":[' * 40 + b'{"eq":"x"}' + b"]}" * 40, size, _FILTER),
    "keys that are not allowed": lambda size: Case(Party.CLIENT, numbered(_CALL + b"{", b'"k%d":1', b"}}}}", size), {"type": "object", "properties": {"x": {"additionalProperties": False}}}),
    "objects that lack a key": lambda size: call(b"{}", size, {"items": {"required": [f"p{n}" for n in range(50)]}}),
    # ── the protocol ─────────────────────────────────────────────────────────────────────────────────────────────────
    "content": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"result":{"content":[', b'{"type":"text","text":""}', b"]}}", size)),
    "content, the last is wrong": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"result":{"content":[', b'{"type":"text","text":""}', b',{"type":"x"}]}}', size)),
    "content, all wrong": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"result":{"content":[', b'{"type":"resource","resource":{}}', b"]}}", size)),
    "links": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"result":{"content":[', b'{"type":"resource_link","uri":"a:b","name":"n"}', b"]}}", size)),
    "params of the wrong type": lambda size: raw(filled(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[', b"{}", b"]}", size)),
    "params of an unknown method": lambda size: raw(filled(b'{"jsonrpc":"2.0","id":5,"method":"x/y","params":{"x":[', b"{}", b"]}}", size)),
    "capabilities": lambda size: raw(numbered(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"a","version":"1"},"capabilities":{"experimental":{', b'"k%d":{}', b"}}}}", size), revision=""),
    "sampling": lambda size: raw(filled(b'{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{"maxTokens":5,"messages":[', b'{"role":"user","content":{"type":"text","text":""}}', b"]}}", size), Party.SERVER),
    "2026-07-28: content": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[', b'{"type":"text","text":""}', b"]}}", size), revision="2026-07-28"),
    "2026-07-28: structured": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[],"structuredContent":[', b'[[{}]]', b"]}}", size), revision="2026-07-28"),
    "an error's data": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m","data":[', b"{}", b"]}}", size)),
    "an answer to nothing": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":77,"result":{"x":[', b"{}", b"]}}", size)),
    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────
    "bad tools": lambda size: answer(filled(_TOOLS, b"{}", b"]}}", size), asked="tools/list"),
    "numbers for tools": lambda size: answer(filled(_TOOLS, b"1", b"]}}", size), asked="tools/list"),
    "good tools": lambda size: answer(numbered(_TOOLS, _TOOL, b"]}}", size), asked="tools/list"),
    "good tools and a bad one": lambda size: answer(numbered(_TOOLS, _TOOL, b",{}]}}", size), asked="tools/list"),
    "every other tool is bad": lambda size: answer(numbered(_TOOLS, b'{},' + _TOOL, b"]}}", size), asked="tools/list"),
    "the same tool": lambda size: answer(filled(_TOOLS, b'{"name":"n","inputSchema":{"type":"object"}}', b"]}}", size), asked="tools/list"),
    "tools with bad schemas": lambda size: answer(numbered(_TOOLS, b'{"name":"n%d","inputSchema":{"type":"object","$ref":"x"}}', b"]}}", size), asked="tools/list"),
    "tools with large schemas": lambda size: answer(numbered(_TOOLS, b'{"name":"n%d","inputSchema":' + _BIG_SCHEMA + b"}", b"]}}", size), asked="tools/list"),
    "tools and large _meta": lambda size: answer(filled(_TOOLS + b'{},' * 50 + b'{"name":"n","inputSchema":{"type":"object"}}],"_meta":{"x":[', b"1", b"]}}}", size), asked="tools/list"),
    "one tool with a huge schema": lambda size: answer(filled(_TOOLS + b'{"name":"n","inputSchema":{"type":"object","examples":[', b"1", b"]}}]}}", size), asked="tools/list"),
    "bad prompts": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"result":{"prompts":[', b"{}", b"]}}", size), asked="prompts/list"),
    "resources of a bad format": lambda size: answer(filled(b'{"jsonrpc":"2.0","id":2,"result":{"resources":[', b'{"name":"n","uri":"no uri"}', b"]}}", size), asked="resources/list"),
    # ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────
    "a batch": lambda size: raw(filled(b"[", b"{}", b"]", size), revision="2025-03-26"),
    "a batch of 1,000": lambda size: raw(b"[" + b",".join([filled(b'{"jsonrpc":"2.0","id":5,"method":"x/y","params":{"x":[', b"{}", b"]}}", size // 1001)] * 1000) + b"]", revision="2025-03-26"),
    "a batch of bad calls": lambda size: raw(b"[" + b",".join([filled(b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"x":[' % n, b'{"and":[{"or":[{"eq":"x"}]}]}', b"]}}}", size // 1010) for n in range(1000)]) + b"]", schema=of_x(_FILTER), revision="2025-03-26"),
    "a batch where none is allowed": lambda size: raw(filled(b"[", b"{}", b"]", size)),
    "a batch of answers, none allowed": lambda size: raw(filled(b"[", b'{"id":5}', b"]", size), Party.SERVER),
}  # fmt: skip


def opened(case: Case, mode: str) -> Conversation:
    """A conversation up to the message."""
    made = Conversation(mode=mode, limits=Limits(frame_bytes=FRAME_BYTES), revision=case.revision or None)  # type: ignore[arg-type]
    if not case.revision:
        return made
    meta = {"io.modelcontextprotocol/protocolVersion": case.revision, "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"}}  # fmt: skip
    params: dict[str, Any] = {"_meta": meta} if case.revision >= "2026" else {}
    tool = {"name": "t", "inputSchema": case.schema, "outputSchema": case.schema}
    listed = {"tools": [tool], **({"resultType": "complete", "ttlMs": 1, "cacheScope": "public"} if params else {})}
    made.hear(Party.CLIENT, orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}))
    heard = made.hear(Party.SERVER, orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": listed}))
    assert heard.findings is None, heard
    if case.asked:
        asked = {"name": "t", "arguments": {}} if case.asked == "tools/call" else {}
        made.hear(
            Party.CLIENT, orjson.dumps({"jsonrpc": "2.0", "id": 2, "method": case.asked, "params": {**asked, **params}})
        )
        assert made.open_requests(Party.CLIENT)
    return made


def measure(name: str, mode: str, path: str) -> None:
    """Judge the message in a file and print what it took; run in a process of its own."""
    frame = Path(path).read_bytes()
    # What made the message may have taken more memory than judging it: so only what was said before is made here.
    case = CASES[name](4096)
    conversation = opened(case, mode)
    run = RunIdentity(deterministic=True, payloads=False, server="", patterns=())
    conversation.hear(Party.CLIENT, b'{"jsonrpc":"2.0","id":999,"method":"ping"}')
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak() - len(frame) / 1024
    began = time.process_time()
    verdict = conversation.hear(case.party, frame)
    record_of(verdict, Moment("stdio", "stdio", b"", 0.0), run, ts="", milliseconds=0.0, sent=0)
    sent = len(verdict.onward or b"") + len(verdict.back or b"")
    what = ",".join(sorted({each.rule for each in verdict.violations})) or "good"
    kind = verdict.kind
    del verdict
    took = time.process_time() - began
    print(f"{took * 1000:.0f}\t{(_peak() - before) / 1024:.0f}\t{kind} {what} {sent}")


def _peak() -> int:
    """The most memory of the process since that was last cleared, in KiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def dear(name: str, size: int) -> bytes:
    """The message as large as can be, with as many values as may be: beyond that it is refused for their number."""
    frame = CASES[name](size).frame
    while not name.startswith("too many") and more_than(frame, DEFAULT.values):
        size = size * 15 // 16
        frame = CASES[name](size).frame
    return frame


def rows(size: int, names: list[str]) -> Iterator[tuple[str, str, int, int, str]]:
    """What each message took, by mode."""
    for name in names or CASES:
        with NamedTemporaryFile() as file:
            file.write(dear(name, size))
            file.flush()
            for mode in ("enforce", "audit"):
                asked = [sys.executable, __file__, "--measure", name, mode, file.name]
                done = subprocess.run(asked, capture_output=True, check=True, timeout=300)
                took, peak, what = done.stdout.decode().strip().split("\t")
                yield name, mode, int(took), int(peak), what


def main(mebibytes: int = 4, names: list[str] | None = None) -> None:
    """Print the table, what breaks the promise marked."""
    size = mebibytes << 20
    room = PROMISED_TIMES * mebibytes + PROMISED_MIB
    print(f"{f'messages of {mebibytes} MiB':<36} {'mode':<8} {'CPU ms':>7} {'MiB':>5}")
    for name, mode, took, peak, what in rows(size, names or []):
        mark = "!" if took > PROMISED_MS or peak > room or took < 0 else " "
        print(f"{name:<36} {mode:<8} {took:>7} {peak:>5} {mark} {what[:60]}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:5])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 4, sys.argv[2:])
