"""Tools made of schemas that other programs wrote, listed and called in a conversation."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from assay.model.limits import Limits
from assay.model.verdict import Violation
from kit.talk import Talk, call, request, result

Mode = Literal["enforce", "audit"]

LIMITS = Limits(frame_bytes=16 << 20, open_requests=10_000)


class Sample(NamedTuple):
    """A schema, and values of it."""

    schema: dict[str, Any]
    good: Sequence[Any] = ()
    bad: Sequence[Any] = ()


def is_wrapped(schema: Any) -> bool:
    """Whether a tool needs an object around *schema*, because it takes nothing else."""
    return not isinstance(schema, dict) or schema.get("type") != "object"


def wrapped(schema: Any) -> dict[str, Any]:
    """*schema* as that of a tool: itself, or an object with it as `value` and with its definitions."""
    if not is_wrapped(schema):
        return dict(schema)
    inside = dict(schema) if isinstance(schema, dict) else schema
    above = {key: inside.pop(key) for key in ("$defs", "definitions", "$schema") if key in inside}
    return {"type": "object", "properties": {"value": inside}, "required": ["value"], **above}


def found_in(samples: Mapping[str, Sample], mode: Mode, **more: Any) -> dict[str, list[Violation]]:
    """Lists a tool for each of *samples*, as what it takes and as what it gives; what is found, by name."""
    talk = Talk(mode=mode, limits=LIMITS, **more).opened()
    schemas = {name: wrapped(sample.schema) for name, sample in samples.items()}
    talk.client(request("list", "tools/list"))
    tools: list[dict[str, Any]] = [
        {"name": name, "inputSchema": schema, "outputSchema": schema} for name, schema in schemas.items()
    ]
    verdict = talk.server(result("list", {"tools": tools}))
    found: dict[str, list[Violation]] = {name: [] for name in samples}
    for each in verdict.violations:
        if each.rule == "protocol/tool-name":
            # The names here are for people.
            continue
        found[tools[int(each.at.split("/")[3])]["name"]].append(each)
    assert verdict.more == 0
    if not verdict.violations:
        assert verdict.onward is verdict.frame
    for number, (name, sample) in enumerate(samples.items()):
        found[name] += _called(talk, number, name, sample)
    return {name: each for name, each in found.items() if each}


def _called(talk: Talk, number: int, name: str, sample: Sample) -> list[Violation]:
    """What is found in good values of a tool, and that something is in bad ones."""
    found: list[Violation] = []
    if not sample.good:
        # What is too much to compile with a list is compiled for the first call, and told then.
        told = talk.client(call(f"{number}", name, {})).violations
        found += [each for each in told if each.rule != "contract/input"]
    for nth, value in enumerate([*sample.good, *sample.bad]):
        given = {"value": value} if is_wrapped(sample.schema) else value
        ident = f"{number} {nth}"
        called = talk.client(call(ident, name, given))
        if nth < len(sample.good):
            found += called.violations
            found += talk.server(result(ident, {"content": [], "structuredContent": given})).violations
        else:
            assert [each.rule for each in called.violations][:1] == ["contract/input"], (name, value)
    return found
