"""Recordings with findings, and the reports of `assay check` on them, read back."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from assay.cli.reports.formats import FORMATS
from kit import talk
from kit.talk import notification, request, result

INTEGERS = {"n": {"type": "integer"}, "list": {"type": "array", "items": {"type": "integer"}}}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {}}
OPENED: list[dict[str, Any]] = [
    request("i", "initialize", {**OPENING, "clientInfo": {"name": "c", "version": "1"}}),
    result("i", {**OPENING, "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}),
    notification("notifications/initialized"),
    request(0, "tools/list", {}),
    result(0, {"tools": [{"name": "add", "inputSchema": {"type": "object", "properties": INTEGERS}}]}),
]


def call(ident: int, arguments: Any, tool: str = "add") -> dict[str, Any]:
    """A call of *tool*."""
    return talk.call(ident, tool, arguments)


def answer(ident: int) -> dict[str, Any]:
    """A result of a call."""
    return result(ident, {"content": []})


def recording(path: Path, *messages: Any) -> str:
    """A file with five messages that open a session, then *messages*; what has a method is the client's."""
    rows = [
        {"dir": "c2s" if isinstance(each, str) or "method" in each else "s2c", "msg": each}
        for each in (*OPENED, *messages)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


# ── reading reports back ─────────────────────────────────────────────────────────────────────────────────────────────

WHOLE = "the message"


class Read(NamedTuple):
    """One finding of a report."""

    file: str
    line: int
    rule: str
    at: str


Reader = Callable[[str], Iterator[Read]]


def _place(text: str) -> str:
    return "" if text == WHOLE else text


_ENTRY = r"(?: \([a-z]+ [^)]*\))?"
_DETAILS = re.compile(rf" {{9}}(?:at (/.*?){_ENTRY}(?:: expected .*)?|expected .*)$")
_SENTENCE = re.compile(rf".*?(?:, at (/.*?){_ENTRY})?$")


def of_text(text: str) -> Iterator[Read]:
    """With `--all`, and lines that are not wrapped."""
    file, line = "", 0
    places: list[str] = []
    for each in text.splitlines():
        if (head := re.match(r" *(\d+|end)  [✗!E~] (?:client|server)  ", each)) is not None:
            line, places = 0 if head[1] == "end" else int(head[1]), []
        elif (place := _DETAILS.match(each)) is not None:
            places.append(place[1] or "")
        elif (rule := re.match(r" {9}([a-z]+/[a-z0-9-]+) \(", each)) is not None:
            yield from (Read(file, line, rule[1], at) for at in places)
            places = []
        elif each and not each.startswith(" ") and " messages" not in each and " message " not in each:
            file = each


def of_ndjson(text: str) -> Iterator[Read]:
    for record in map(json.loads, text.splitlines()):
        yield from (Read(record["file"], record["line"], each["rule"], each["at"]) for each in record["violations"])


def of_json(text: str) -> Iterator[Read]:
    for each in json.loads(text)["findings"]:
        yield from (Read(each["file"], place["line"], each["rule"], place["at"]) for place in each["places"])


def of_sarif(text: str) -> Iterator[Read]:
    [run] = json.loads(text)["runs"]
    for each in run["results"]:
        rule = each["ruleId"]
        assert run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] == rule
        for location in [*each["locations"], *each["relatedLocations"]]:
            [logical] = location["logicalLocations"]
            file, line = each["properties"]["recording"], 0
            # A recording outside of the working directory has none.
            if (physical := location.get("physicalLocation")) is not None:
                file = unquote(physical["artifactLocation"]["uri"])
                line = physical.get("region", {"startLine": 0})["startLine"]
            yield Read(file, line, rule, logical.get("fullyQualifiedName", ""))


_IN_CASE = re.compile(rf"^.*?(?:, at (/.*?){_ENTRY})? \(([^()]*), (?:line (\d+)|the end)\)$")


def of_junit(text: str) -> Iterator[Read]:
    for case in ET.fromstring(text).iter("testcase"):  # noqa: S314 - our own
        for below in case:
            file = ""
            for line in (below.text or "").splitlines():
                if (found := _IN_CASE.match(line)) is not None:
                    file = found[2]
                    yield Read(file, int(found[3] or 0), case.attrib["name"], found[1] or "")
                elif (more := re.fullmatch(r"line (\d+): (the message|/.*)", line)) is not None:
                    yield Read(file, int(more[1]), case.attrib["name"], _place(more[2]))


_ANNOTATION = re.compile(r"::(?:error|warning|notice) file=([^,]*),(?:line=(\d+),)?title=([^:]*)::(.*)")


def _decoded(text: str) -> str:
    for escaped, plain in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(escaped, plain)
    return text


def of_github(text: str) -> Iterator[Read]:
    for each in text.splitlines():
        found = _ANNOTATION.fullmatch(each)
        assert found is not None, each
        file, rule, lines = _decoded(found[1]), _decoded(found[3]), _decoded(found[4]).split("\n")
        sentence = _SENTENCE.match(lines[0])
        assert sentence is not None, each
        yield Read(file, int(found[2] or 0), rule, sentence[1] or "")
        for also in lines[2:]:
            if (more := re.fullmatch(r"line (\d+): (the message|/.*)", also)) is not None:
                yield Read(file, int(more[1]), rule, _place(more[2]))


def of_gitlab(text: str) -> Iterator[Read]:
    for each in json.loads(text):
        for found in re.finditer(r"^- line (\d+): (the message|/.*)$", each["content"]["body"], re.MULTILINE):
            yield Read(each["location"]["path"], int(found[1]), each["check_name"], _place(found[2]))


_ITEM = re.compile(r"- [✗!·] \w+ (?:\[)?`([a-z/0-9-]+)`.* in `(.*?)`, (?:line (\d+)|the end): ")


def of_markdown(text: str) -> Iterator[Read]:
    file, rule, line, is_new = "", "", 0, False
    for each in text.splitlines():
        if (item := _ITEM.match(each)) is not None:
            rule, file, line, is_new = item[1], item[2], int(item[3] or 0), True
        elif is_new and (place := re.match(r"  - `+.*?`+(?:, at `(/.*?)`(?: \(`.*?`\))?)?$", each)) is not None:
            yield Read(file, line, rule, place[1] or "")
            is_new = False
        elif (more := re.fullmatch(r"  - line (\d+): (?:the message|`(/.*)`)", each)) is not None:
            yield Read(file, int(more[1]), rule, more[2] or "")


def page_data(text: str) -> Any:
    """Return the data in the page of an HTML report."""
    [data] = re.findall(r'<script type="application/json" id="answers">(.*?)</script>', text, re.DOTALL)
    return json.loads(data)


def of_html(text: str) -> Iterator[Read]:
    for path, message in page_data(text).items():
        if path.startswith("messages/"):
            for each in message["violations"]:
                yield Read(message["file"], message["line"], each["rule"], each["at"])


READERS: dict[str, Reader] = {
    name.removeprefix("of_"): each for name, each in list(globals().items()) if name.startswith("of_")
}
assert set(READERS) == set(FORMATS)


def outputs(place: Path) -> list[str]:
    """The options that write every format to a file in *place*."""
    return [word for name in FORMATS for word in ("--output", f"{name}={place / name}")]


def written(place: Path) -> dict[str, str]:
    """Return what `outputs` has written, by format."""
    return {name: (place / name).read_text(encoding="utf-8") for name in FORMATS}


def parsed(name: str, text: str) -> Any:
    """Return a report as its own parser reads it; raises an exception if it is malformed."""
    if name in {"json", "sarif", "gitlab"}:
        return json.loads(text)
    if name == "ndjson":
        return [json.loads(line) for line in text.splitlines()]
    if name == "html":
        return page_data(text)
    return ET.fromstring(text) if name == "junit" else text  # noqa: S314 - our own
