"""
Messages with something changed in them, by their structure: members added, moved, retyped, renamed, deleted and
repeated at every depth; ids; batches. Imports nothing of ours. The same seed gives the same frames.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
NAMES = [
    "jsonrpc", "id", "method", "params", "result", "error", "code", "message", "data", "_meta", "name", "arguments",
    "uri", "cursor", "progressToken", "requestId", "progress", "level", "ref", "argument", "task", "taskId",
    "capabilities", "protocolVersion", "clientInfo", "notifications", "resultType", "content", "structuredContent",
    "isError", "tools", *META, "io.modelcontextprotocol/logLevel", "traceparent", "Method",
    "PARAMS", "param\u017f", "id\0", "Name", "__proto__", "", "x",
]  # fmt: skip
"""Members that mean something somewhere, and some that look like them."""

VALUES: list[Any] = [
    None, True, False, 0, -0.0, 1, -1, 1.5, 1e300, 2**63, -(2**70), "", "x", "\0", "é\U0001f600", "nobody's", "2.0",
    "ping", "tools/call", "tools/list", "initialize", "notifications/cancelled", "search", "2025-11-25", "2030-01-01",
    [], {}, ["x"], [[]], {"x": 1}, {"name": ["x"]}, [None] * 3, {"a": {"b": {"c": []}}}, "x" * 3000,
]  # fmt: skip

METHODS = [
    "initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
    "resources/subscribe", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "tasks/get",
    "tasks/result", "tasks/list", "server/discover", "roots/list", "sampling/createMessage", "elicitation/create",
    "notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/message",
    "acme/anything",
]  # fmt: skip


def seeds() -> list[Any]:
    """Messages of a client in every revision, of our own making."""
    call = {"name": "search", "arguments": {"words": "sea", "limit": 3}}
    info = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "a", "version": "1"}}
    params: dict[str, Any] = {
        "initialize": info,
        "tools/call": call,
        "resources/read": {"uri": "file:///readme.md"},
        "prompts/get": {"name": "write_asset", "arguments": {"schema": "x"}},
        "completion/complete": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": "b"}},
        "logging/setLevel": {"level": "debug"},
        "notifications/cancelled": {"requestId": "nobody's", "reason": "late"},
        "notifications/progress": {"progressToken": "t", "progress": 1},
        "notifications/message": {"level": "info", "data": {"x": 1}},
        "tasks/get": {"taskId": "t"},
    }
    made = [_message(method, params.get(method, {})) for method in METHODS]
    made += [_message(method, {**params.get(method, {}), "_meta": META}) for method in METHODS]
    made += [_message("tools/call", {**call, "_meta": {"progressToken": 7}}), _message("get_schema", {"name": "x"})]
    return [
        *made,
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}},
    ]


def _message(method: str, params: Any) -> dict[str, Any]:
    ident = {} if method.startswith("notifications/") else {"id": 0}
    return {"jsonrpc": "2.0", **ident, "method": method, "params": params}


def recorded(directory: Path, most: int = 4000) -> list[Any]:
    """What clients said in recorded conversations, as far as it is no longer than *most* bytes."""
    found = []
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            said = json.loads(line)
            if said.get("dir") == "c2s" and isinstance(said.get("msg"), str) and len(said["msg"]) <= most:
                found.append(json.loads(said["msg"]))
    return found


# ── one change ───────────────────────────────────────────────────────────────────────────────────────────────────────

OURS = "r-"
"""How ids begin that no two frames have."""

Place = tuple[Any, Any]
"""An object or array, and a key or index of it."""


def places(value: Any) -> Iterator[Place]:
    """Everything in *value* that stands in something."""
    for key, below in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(below, dict | list):
            yield from places(below)


def any_value(random: Random) -> Any:
    """A value of its own, which may be changed in turn."""
    return deepcopy(random.choice(VALUES))


def add(random: Random, place: Place) -> None:
    """A member, or an entry, that was not there."""
    within = place[0]
    if isinstance(within, dict):
        within[random.choice(NAMES)] = any_value(random)
    else:
        within.insert(random.randint(0, len(within)), any_value(random))


def retype(random: Random, place: Place) -> None:
    """Another value, most likely of another type."""
    place[0][place[1]] = any_value(random)


def wrap(random: Random, place: Place) -> None:
    """The same value, one level further down."""
    within, key = place
    within[key] = [within[key]] if random.random() < 0.5 else {random.choice(NAMES): within[key]}


def rename(random: Random, place: Place) -> None:
    """The same member by another name, or in another spelling."""
    within, key = place
    if isinstance(within, dict):
        other = random.choice([random.choice(NAMES), key.upper(), key.title(), key + "\0", key[:-1]])
        within[other] = within.pop(key)


def delete(_: Random, place: Place) -> None:
    """Not there any more."""
    del place[0][place[1]]


CHANGES: list[Callable[[Random, Place], None]] = [add, add, retype, retype, wrap, rename, delete]


def move(random: Random, value: Any) -> None:
    """A member that stands somewhere else."""
    (within, key), (other, _) = (random.choice(list(places(value))) for _ in range(2))
    taken = within[key]
    if isinstance(other, dict) and taken is not other and not _holds(taken, other):
        del within[key]
        other[key if isinstance(key, str) else random.choice(NAMES)] = taken


def _holds(value: Any, wanted: Any) -> bool:
    if not isinstance(value, dict | list):
        return False
    return any(
        each is wanted or _holds(each, wanted) for each in (value.values() if isinstance(value, dict) else value)
    )


def changed(random: Random, message: Any, ident: Any) -> Any:
    """A copy of *message* with the id *ident*, and one to three changes."""
    value = json.loads(json.dumps(message))
    if isinstance(value, dict) and "id" in value:
        value["id"] = ident
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        if not isinstance(value, dict | list) or not value:
            break
        if random.random() < 0.15:
            move(random, value)
        else:
            random.choice(CHANGES)(random, random.choice(list(places(value))))
    return value


def frame(random: Random, messages: Sequence[Any], ident: Any) -> bytes:
    """A frame: a changed message, now and then in a batch, with a repeated member, or with its text cut or spoilt."""
    value = changed(random, random.choice(messages), ident)
    chance = random.random()
    if chance < 0.02:
        value = [value, changed(random, random.choice(messages), f"{ident}b")]
    text = json.dumps(value, ensure_ascii=random.random() < 0.5, separators=random.choice([(",", ":"), (", ", ": ")]))
    data = text.encode("utf-8", "surrogatepass").replace(b"\n", b" ")
    if 0.02 <= chance < 0.05 and b"{" in data:
        at = random.choice([place for place, each in enumerate(data) if each == 0x7B])
        data = data[: at + 1] + b'"%b":1,' % random.choice(NAMES[:10]).encode() + data[at + 1 :]
    elif 0.05 <= chance < 0.07 and data:
        at = random.randrange(len(data))
        data = data[:at] + random.choice([b"", b"\xff", b"\x00", b"\\ud800", b"}", b"[" * 200, b"\r"]) + data[at + 1 :]
    return data


def asks(data: bytes) -> Any:
    """The id of the one request that *data* is beyond doubt, which needs an answer; None for any other frame."""
    try:
        value = json.loads(data, object_pairs_hook=_once)
        # Half of a surrogate pair is refused before anything else is known of a frame.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("method"), str) or value.get("jsonrpc") != "2.0":
        return None
    if value["method"] in {"subscriptions/listen", ""} or "result" in value or "error" in value or b"\r" in data:
        return None
    ident = value.get("id")
    return ident if isinstance(ident, str) and ident.startswith(OURS) and not ident.endswith("b") else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key came twice")
    return found
