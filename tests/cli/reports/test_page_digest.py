"""What the HTML report keeps of a recording: bounded, and the same however the work was split."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.main import main
from assay.cli.reports.page import page_digest
from assay.cli.reports.page.shortened import shortened
from assay.cli.reports.page.shown_message import source_link
from assay.records.log_histogram import PRECISION, LogHistogram
from kit.check_formats import OPENED, answer, call, recording
from kit.check_formats import page_data as data_in
from kit.command import assay_text
from kit.laws import law
from kit.places import ROOT, TESTS
from kit.rows import rows

# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@law(100)
@given(st.lists(st.integers(0, 10**12), min_size=1), st.sampled_from([0.5, 0.95, 0.99]))
def test_percentiles_are_as_precise_as_the_page_says(values: list[int], part: float) -> None:
    whole, halves = LogHistogram(), (LogHistogram(), LogHistogram())
    for number, value in enumerate(values):
        whole.add(value)
        halves[number % 2].add(value)
    halves[0].merge(halves[1])
    assert halves[0].as_json() == whole.as_json()
    ordered = sorted(values)
    exact = ordered[max(0, -(-int(part * 1000 * len(values)) // 1000) - 1)]
    assert abs(whole.quantile(part) - exact) <= PRECISION * exact + 1e-6
    assert sum(each[2] for each in (whole.as_json() or {})["buckets"]) == len(values)


@law(100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=400),
        lambda inner: st.lists(inner, max_size=60) | st.dictionaries(st.text(max_size=8), inner, max_size=30),
        max_leaves=200,
    ),
    st.integers(200, 4000),
)
def test_a_shortened_value_keeps_the_way_to_the_fault(value: Any, most: int) -> None:
    outer = {"before": [value] * 30, "way": [value, value, {"to": {"the fault": 17}}, value], "after": value}
    text = shortened(outer, [("way", "2", "to", "the fault")], most)
    assert '"the fault":17' in text
    assert len(text) < most + 2000


@rows(
    ("source", "address"),
    [
        ("MCP 2025-11-25, server/tools: inputSchema of x", "https://modelcontextprotocol.io/specification/2025-11-25/server/tools"),
        ("MCP (every revision), basic", "https://modelcontextprotocol.io/specification/2025-06-18/basic"),
        ("RFC 8259", "https://www.rfc-editor.org/rfc/rfc8259"),
        ("JSON-RPC 2.0, 4", "https://www.jsonrpc.org/specification"),
        ("ours", None),
    ],
)  # fmt: skip
def test_sources_have_addresses(source: str, address: str | None) -> None:
    assert source_link(source, "2025-06-18") == address


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def report(*arguments: str) -> int:
    return assay_text("report", *arguments).returncode


def data_of(name: str = "assay-report.html") -> Any:
    """The data in a page."""
    return data_in(Path(name).read_text(encoding="utf-8"))


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    recording(tmp_path / "bad.jsonl", call(1, {"n": "x"}), answer(1))
    return "bad.jsonl"


def test_the_command_says_what_it_has_written_and_where(bad: str) -> None:
    said = "Enforce mode would have blocked 1 of 7 messages (1 call).\n"
    done = assay_text("report", bad)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(r"assay report: assay-report\.html \(\d+ kB\): " + re.escape(said), done.stderr)
    assert data_of()["totals"]["error"] == 1
    printed = assay_text("report", bad, "-o", "-")
    assert (printed.stdout[:16], printed.stdout[-8:]) == ("<!doctype html>\n", "</html>\n")
    assert printed.stderr == f"assay report: standard output: {said}"
    assert (report(bad, "--fail-on", "refuse"), report("nowhere.jsonl")) == (1, 2)


LIMITS = {
    "MOST_GROUPS": 7,
    "MOST_WHOLE": 5,
    "MOST_TALKS": 6,
    "MOST_FAULTY_TALKS": 4,
    "MOST_METHODS": 5,
    "MOST_TOOLS": 3,
}


def test_lists_of_a_page_are_bounded_and_what_is_left_out_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are chosen by peers, and each has a group, a tool and a conversation of its own."""
    monkeypatch.chdir(tmp_path)
    for name, value in LIMITS.items():
        monkeypatch.setattr(page_digest, name, value)
    opened = [json.dumps({"dir": "c2s" if "method" in each else "s2c", "msg": each}) for each in OPENED]
    rows = [line[:-1] + f', "conversation": {number}}}' for number in range(1, 31) for line in opened]
    for number in range(1, 31):
        for message in (call(1, {f"x{number}": 1, "n": "a"}, "add"), call(2, {}, f"t{number}"), answer(1), answer(2)):
            side = "c2s" if "method" in message else "s2c"
            rows.append(json.dumps({"dir": side, "conversation": number, "msg": message}))
    Path("many.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert report("many.jsonl") == 0
    data = data_of()
    assert (data["totals"]["conversations"], data["totals"]["messages"]) == (30, 30 * 9)
    assert (len(data["groups"]), len(data["talks"]) <= 6 + 4) == (7, True)
    found = json.loads(assay_text("check", "--format", "json", "--all", "many.jsonl").stdout)["findings"]
    assert data["totals"]["findings"] == sum(each["count"] for each in found)
    assert data["leftOut"] == data["totals"]["findings"] - sum(each["count"] for each in data["groups"]) > 0
    for group in data["groups"]:
        for number, at in group["samples"]:
            assert data["messages"][number]["findings"][at]["rule"] == group["rule"]


@rows("files", [["bad.jsonl"], ["."], ["*.jsonl"]])
def test_a_recording_is_never_replaced(files: list[str], bad: str) -> None:
    before = Path(bad).read_bytes()
    done = assay_text("report", *files, "-o", "./bad.jsonl")
    assert (done.returncode, done.stderr) == (2, "assay report: ./bad.jsonl: the page would replace a recording\n")
    assert Path(bad).read_bytes() == before


def test_the_same_recording_gives_the_same_page(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert report(bad, "-o", "1.html") == report(bad, "-o", "2.html") == 0
    page = Path("1.html").read_text(encoding="utf-8")
    assert page == Path("2.html").read_text(encoding="utf-8")
    assert data_of("1.html")["generator"]["made"] == "1970-01-01 00:00 UTC"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    report(bad, "-o", "3.html")
    assert data_of("3.html")["generator"]["made"].startswith(str(datetime.now(UTC).year))


def test_known_findings_are_marked(bad: str) -> None:
    assert main(["check", "--write-baseline", "known.json", bad]) == 0
    assert report(bad, "--baseline", "known.json", "--fail-on", "report") == 0
    data = data_of()
    assert [each["known"] for each in data["groups"]] == [True]
    assert data["verdict"]["notes"] == ["1 finding is in the baseline."]


# ── modules ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_page_loads_nothing(bad: str) -> None:
    report(bad)
    page = Path("assay-report.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;; script-src &#x27;sha256-")
    assert "unsafe" not in policy[1]
    outside = re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)="(?!data:)', outside) == []


PARSES_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment"
)


def test_no_module_parses_html() -> None:
    modules = list((Path(page_digest.__file__).parents[3] / "web").glob("*.js"))
    assert len(modules) > 10
    assert [path.name for path in modules if PARSES_HTML.search(path.read_text(encoding="utf-8"))] == []


def test_the_chart_library_is_the_published_one() -> None:
    vendored, package = ROOT / "src/assay/web/vendor/uplot", TESTS / "real/browser/node_modules/uplot"
    if not package.is_dir():
        pytest.skip("uplot is not installed: `make test` does it where there is npm")
    assert json.loads((package / "package.json").read_text())["version"] == (vendored / "VERSION").read_text().strip()
    for name, published in (("uPlot.iife.min.js", "dist"), ("uPlot.min.css", "dist"), ("LICENSE", "")):
        assert (vendored / name).read_bytes() == (package / published / name).read_bytes(), name


def test_recordings_in_one_file_have_conversations_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have a conversation 1; the answer in the second one belongs to no request of the first."""
    monkeypatch.chdir(tmp_path)
    asked = '{"dir":"c2s","conversation":1,"msg":{"jsonrpc":"2.0","id":7,"method":"ping"}}'
    answered = '{"dir":"s2c","conversation":1,"msg":{"jsonrpc":"2.0","id":7,"result":{}}}'
    begin = '{"event":"recording","version":1}'
    Path("two.jsonl").write_text("\n".join([begin, asked, begin, answered, ""]), encoding="utf-8")
    report("two.jsonl", "-o", "two.html", "--revision", "2025-11-25")
    data = data_of("two.html")
    assert data["totals"]["conversations"] == 2
    assert sorted(each["messages"] for each in data["talks"]) == [1, 1]
    [request] = [row for talk in data["talks"] for row in talk["rows"] if row[3] == "request"]
    assert request[7] is None
