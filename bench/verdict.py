"""
The cost of a verdict, beside its peers, in one run.

CPU time, the best of many rounds, everything interleaved so that a slow moment of the machine hits all alike. The ratio
to `orjson.loads` of the same bytes is what counts; microseconds depend on the machine.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import orjson

from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.spec.schema import protocol_schema
from payloads import CALLS, TOOLS, call, opened, result
from tables import PROGRESS, table

ROUNDS = 40
Work = Callable[[], None]


def best(works: dict[str, Work], count: int, rounds: int = ROUNDS) -> dict[str, float]:
    """Microseconds a message, the best round of each."""
    found = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            begin = time.process_time()
            work()
            found[name] = min(found[name], (time.process_time() - begin) / count * 1e6)
    return found


def measured(name: str) -> dict[str, float]:
    """One payload: what reading it costs, what a verdict costs, and what peers take for less than a verdict."""
    tool, arguments = CALLS[name]
    count = 300 if len(call(0, tool, arguments)) < 10_000 else 30
    frames = [call(ident, tool, arguments) for ident in range(1000, 1000 + count)]
    answers = [result(ident) for ident in range(1000, 1000 + count)]
    client, server = Party.CLIENT, Party.SERVER
    # One conversation per round: within a session an id is used once, and a second use takes the long way.
    spare = [opened() for _ in range(ROUNDS)]
    used: list[Conversation] = []

    def loads() -> None:
        for frame in frames:
            orjson.loads(frame)

    def verdict() -> None:
        used.append(spare.pop())
        hear = used[-1].hear
        for frame in frames:
            hear(client, frame)

    def answered() -> None:
        hear = used[-1].hear
        for frame in answers:
            hear(server, frame)

    works: dict[str, Work] = {"orjson.loads": loads, "assay": verdict, "(answers)": answered}
    found = best(works, count)
    few = frames[: max(3, count // 30)]
    return found | best(peers(few, tool), len(few), rounds=5)


def peers(frames: list[bytes], tool: str) -> dict[str, Work]:
    """What others do: the schema of the request and of the tool, in Python; the official SDK's own models."""
    jsonschema: Any = import_module("jsonschema")
    request_model: Any = import_module("mcp_types").CallToolRequest
    protocol = {"$ref": "#/$defs/CallToolRequest", **protocol_schema("2025-11-25").closure("CallToolRequest")}
    whole = jsonschema.Draft202012Validator(protocol)
    contract = jsonschema.Draft202012Validator(TOOLS[tool])

    def by_jsonschema() -> None:
        for frame in frames:
            value = orjson.loads(frame)
            assert whole.is_valid(value)
            assert contract.is_valid(value["params"]["arguments"])

    def by_models() -> None:
        for frame in frames:
            request_model.model_validate_json(frame)

    return {"jsonschema": by_jsonschema, "mcp-types": by_models}


_START = """
import time
begin = time.process_time()
{work}
print((time.process_time() - begin) * 1000)
"""

_FIRST_VERDICT = """from assay import Conversation, Party
Conversation().hear(Party.CLIENT, b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":'
    b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}')"""


def started(work: str) -> float:
    """Milliseconds of CPU over the bare interpreter, the best of ten processes."""
    script = _START.replace("{work}", work)
    return min(
        float(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout) for _ in range(10)
    )


def main() -> dict[str, Any]:
    """Print the table; return the figures."""
    figures: dict[str, Any] = {}
    rows = []
    for name, (tool, arguments) in CALLS.items():
        PROGRESS.show(f"verdict: {name}")
        found = measured(name)
        unit = found["orjson.loads"]
        size = len(call(1000, tool, arguments))
        figures[name] = {"bytes": size, "loads_us": unit, "assay_us": found["assay"], "ratio": found["assay"] / unit}
        figures[name] |= {peer: found[peer] / unit for peer in ("jsonschema", "mcp-types")}
        cells = (f"{size:,}", f"{unit:.2f}", f"{found['assay']:.2f}", f"{found['assay'] / unit:.2f}×")
        rows.append((name, *cells, *(f"{found[peer] / unit:.1f}×" for peer in ("jsonschema", "mcp-types"))))
    PROGRESS.show("")
    print(table(("tools/call", "bytes", "loads µs", "assay µs", "ratio", "jsonschema", "mcp-types"), rows))
    print("ratios are to orjson.loads of the same bytes")
    print("jsonschema: the schema of the request and of the tool only; mcp-types: the model of the request only")
    figures["start"] = {"cpu_ms": started(_FIRST_VERDICT)}
    print(f"import and first verdict: {figures['start']['cpu_ms']:.0f} ms of CPU over the bare interpreter")
    return figures


if __name__ == "__main__":
    main()
