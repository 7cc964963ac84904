"""The name of every quarantined or refused entry of a list: in the verdict, on stderr, in the journal, in `check`."""

import json
from typing import Any

from assay.guard.summary import GuardSummary
from assay.model.verdict import ListEntry, Verdict
from assay.schema.tool_contracts import MOST_QUARANTINED
from kit.command import assay_text
from kit.rows import rows
from kit.talk import Talk, call, replacement, request, result

BAD = {"type": "object", "properties": {"a": {"type": "strnig"}}}
EVIL = "a\x1b[2J\n\u202eb" + "x" * 500


def tool(name: Any, schema: Any = None) -> dict[str, Any]:
    """A tool of that name, and with a schema that does not compile unless one is given."""
    return {"name": name, "inputSchema": BAD if schema is None else schema}


def listed(method: str, entries: list[Any], mode: str = "enforce", **options: Any) -> Verdict:
    """The verdict on a list."""
    member = {"resources/templates/list": "resourceTemplates"}.get(method, method.partition("/")[0])
    talk = Talk(mode=mode, **options).opened()
    speaker, hearer = (talk.server, talk.client) if method == "roots/list" else (talk.client, talk.server)
    speaker(request(1, method))
    return hearer(result(1, {member: entries}))


@rows("mode", ["enforce", "audit"])
@rows(
    ("method", "entry", "name"),
    [
        ("tools/list", tool("search"), "tool search"),
        ("tools/list", {"name": "bare"}, "tool bare"),
        ("tools/list", {"inputSchema": {"type": "object"}}, "tool number 1"),
        ("tools/list", 5, "tool number 1"),
        ("prompts/list", {"name": "weekly", "arguments": 5}, "prompt weekly"),
        ("resources/list", {"name": "notes", "uri": 5}, "resource notes"),
        ("resources/list", {"uri": "file:///notes"}, "resource file:///notes"),
        ("resources/templates/list", {"name": "page", "uriTemplate": 5}, "resource template page"),
    ],
)
def test_a_quarantined_entry_is_named(mode: str, method: str, entry: Any, name: str) -> None:
    verdict = listed(method, [entry], mode)
    assert verdict.accepted
    assert str(verdict.violations[0].entry) == name
    assert [str(each) for each in verdict.quarantined] == [name]
    assert f" ({name}): expected " in str(verdict.violations[0])


def test_a_refused_entry_is_named() -> None:
    verdict = listed("roots/list", [{"name": "home", "uri": 5}])
    assert not verdict.accepted
    assert str(verdict.violations[0].entry) == "root home"
    assert verdict.quarantined == ()
    [noted] = replacement(verdict)["error"]["data"]["violations"]
    assert noted["entry"] == {"kind": "root", "name": "home"}


def test_all_quarantined_entries_are_named_however_many_violations_are_listed() -> None:
    verdict = listed("tools/list", [tool(f"t{number}") for number in range(100)])
    assert len(verdict.violations) == 20
    assert verdict.quarantined == tuple(ListEntry("tool", f"t{number}") for number in range(100))
    assert MOST_QUARANTINED >= 100


def test_a_name_is_short_and_printable_whatever_the_server_calls_it() -> None:
    [entry] = listed("tools/list", [tool(EVIL)]).quarantined
    assert entry.name.startswith("a·[2J··bxxx")
    assert len(entry.name) == 60
    assert entry.name.isprintable()


def test_a_tool_that_is_found_unusable_only_when_it_is_called_is_named() -> None:
    """What is too much to compile with the list is compiled for the first call."""
    patterns = {"type": "object", "properties": {str(number): {"pattern": "a"} for number in range(64)}}
    late = {"name": "late", "inputSchema": {**BAD, "title": '"pattern"'}}
    talk = Talk().opened().listed({"name": "first", "inputSchema": patterns}, late)
    verdict = talk.client(call(1, "late", {}))
    assert [str(each) for each in verdict.quarantined] == ["tool late"]


# ── on stderr ────────────────────────────────────────────────────────────────────────────────────────────────────────


def watched(verdict: Verdict, *, enforcing: bool = True) -> list[str]:
    """What people see of *verdict*, and at the end."""
    lines: list[str] = []
    watch = GuardSummary(lines.append, lines.append, enforcing=enforcing)
    watch.heard(verdict, 0.0)
    return [*lines, *watch.summary()]


def test_stderr_names_every_quarantined_entry_and_says_why() -> None:
    log = watched(listed("tools/list", [tool("bad"), tool("good", {"type": "object"}), {"name": "bare"}]))
    assert log[0] == "assay: quarantined 2 tools in tools/list #1: bare, bad"
    assert log[1] == "assay:     Missing property `inputSchema`, at /result/tools/2 (tool bare) [protocol/result]"
    assert log[2].startswith("assay:     `type` must be one of array,")
    assert ", at /result/tools/0/inputSchema/properties/a/type (tool bad) [" in log[2]
    assert "assay: quarantined: bare, bad (2 tools)" in log


def test_many_names_on_stderr_are_cut_and_counted() -> None:
    log = watched(listed("tools/list", [tool(f"t{number}") for number in range(100)]))
    [noted] = [line for line in log if line.startswith("assay: quarantined: ")]
    assert noted.endswith("t18, t19 and 80 more (100 tools)")


# ── in the journal, and in check ─────────────────────────────────────────────────────────────────────────────────────


def test_check_names_every_quarantined_entry_in_text_and_json() -> None:
    answer = result(1, {"tools": [tool("bad"), tool("worse")]})
    rows = [{"dir": "c2s", "msg": request(1, "tools/list")}, {"dir": "s2c", "msg": answer}]
    said = "\n".join(map(json.dumps, rows))
    options = ("--revision", "2025-11-25", "-")
    text, data = (
        assay_text("check", "--format", form, *options, said=said, COLUMNS="200").stdout for form in ("text", "ndjson")
    )
    assert "at /result/tools/0/inputSchema/properties/a/type (tool bad)\n" in text
    assert text.rstrip().endswith("quarantined: bad, worse (2 tools)")
    assert "1 ok, 1 reported" in text
    record = json.loads(data)
    assert record["quarantined"] == [{"kind": "tool", "name": "bad"}, {"kind": "tool", "name": "worse"}]
    assert record["violations"][0]["entry"] == {"kind": "tool", "name": "bad"}
