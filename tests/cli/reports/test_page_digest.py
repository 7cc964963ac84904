"""What the HTML report keeps of a recording: bounded, and the same however the work was split."""

import json
import pickle
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.main import main
from assay.cli.reports.check_findings import CheckedMessage, FindingMask, KnownFindings, MessageCounts
from assay.cli.reports.check_report import FileEnd, ReportOptions, RunEnd
from assay.cli.reports.page import page_digest, page_talks
from assay.cli.reports.page.page_data import page_data
from assay.cli.reports.page.page_digest import PageDigest, TimeBuckets
from assay.cli.reports.page.shortened import shortened
from assay.cli.reports.page.shown_message import source_link
from assay.cli.reports.page.smallest import DistinctCount, Smallest, rank
from assay.core.conversation import Conversation
from assay.core.redaction import Redactor
from assay.records.log_histogram import PRECISION, LogHistogram
from assay.records.recording.judging import Judging
from assay.records.transcript import TranscriptRow
from kit.check_formats import OPENED, answer, call, recording
from kit.check_formats import page_data as data_in
from kit.laws import law
from kit.places import ROOT, TESTS
from kit.rows import rows

REDACTOR = Redactor()
MASK = FindingMask(REDACTOR)


def conversation_rows(conversations: int, calls: int) -> Iterator[TranscriptRow]:
    """Conversations that run at the same time; some calls have findings, one in ten is never answered."""
    rng = random.Random(7)  # noqa: S311 - the same every time
    talks: list[tuple[int, Iterator[Any]]] = []
    for number in range(1, conversations + 1):
        messages = list(OPENED)
        for ident in range(1, calls + 1):
            wrong = rng.choice([None, None, None, "n", "list"])
            arguments = {} if wrong is None else {wrong: f"v{rng.random()}"}
            messages.append(call(ident, arguments, rng.choice(["add", "add", f"t{rng.randrange(20)}"])))
            if rng.random() < 0.9:
                messages.append(answer(ident))
        talks.append((number, iter(messages)))
    line = 0
    while talks:
        talk = rng.choice(talks)
        message = next(talk[1], None)
        if message is None:
            talks.remove(talk)
            continue
        line += 1
        side = "c2s" if "method" in message else "s2c"
        members = {"dir": side, "conversation": talk[0], "msg": json.dumps(message)}
        yield TranscriptRow(line, members, time=1784858594 + line * 0.37)


@pytest.fixture(scope="module")
def checked() -> list[CheckedMessage]:
    """A few thousand judged messages of two files."""
    found: list[CheckedMessage] = []
    for file in ("b.jsonl", "a.jsonl"):
        judging = Judging(lambda _: Conversation(mode="audit"))
        found += [MASK.message(each, file, KnownFindings()) for each in judging.judge_rows(conversation_rows(40, 12))]
    return found


def digest_of(messages: list[CheckedMessage]) -> PageDigest:
    digest = PageDigest(REDACTOR)
    for each in messages:
        digest.add(each)
    return digest


def ended(digest: PageDigest) -> PageDigest:
    for name in ("b.jsonl", "a.jsonl"):
        digest.end(FileEnd(name, MessageCounts(good=1), "2025-11-25"))
    return digest


def shown(digest: PageDigest) -> Any:
    options = ReportOptions("report", MASK)
    return json.loads(json.dumps(page_data(digest, options, RunEnd(0), None)))


SMALL = {
    "MOST_GROUPS": 7, "MOST_WHOLE": 5, "MOST_TALKS": 6, "MOST_FAULTY_TALKS": 4, "MOST_METHODS": 5, "MOST_TOOLS": 1,
    "EXCERPT": 60,
}  # fmt: skip


@rows("limits", [{}, SMALL], ids=["usual limits", "small limits"])
@rows("parts", [2, 5])
def test_a_digest_does_not_depend_on_how_the_work_was_split(
    parts: int, limits: dict[str, int], checked: list[CheckedMessage]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(page_digest, name, value)
        if limits:
            patch.setattr(page_talks, "MOST_ROWS", 8)
            patch.setattr(page_talks, "MORE_WITH_FINDINGS", 3)
        compare(parts, checked)


def compare(parts: int, checked: list[CheckedMessage]) -> None:
    """Compare a digest of all messages with one that is merged."""
    whole = shown(ended(digest_of(checked)))
    assert whole["totals"]["messages"] > 1500
    assert whole["totals"]["conversations"] == 80
    # Conversations stay whole; the parts are filled, sent to another process, and merged.
    shares: list[list[CheckedMessage]] = [[] for _ in range(parts)]
    for each in checked:
        shares[rank(each.file, each.judged.conversation) % parts].append(each)
    merged = PageDigest(REDACTOR)
    for share in shares:
        merged.merge(pickle.loads(pickle.dumps(digest_of(share))))  # noqa: S301 - our own
    assert shown(ended(merged)) == whole


def test_a_digest_masks_the_same_in_another_process() -> None:
    redactor = pickle.loads(pickle.dumps(Redactor(["nightingale"])))  # noqa: S301 - our own
    assert redactor.text("project nightingale") == "[redacted]"
    assert redactor.text("password=hunter2hunter2") == "password=[redacted]"


def test_counts_are_those_of_all_findings(checked: list[CheckedMessage], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_digest, "MOST_GROUPS", 7)
    data = shown(digest_of(checked))
    findings = [each for message in checked for each in message.findings]
    assert data["totals"]["findings"] == len(findings)
    assert len(data["groups"]) == 7
    for rule, shown_rule in data["rules"].items():
        assert shown_rule["count"] == sum(each.key.rule == rule for each in findings)
    assert data["leftOut"] == len(findings) - sum(each["count"] for each in data["groups"])
    for group in data["groups"]:
        same = [each for each in findings if each.key.rule == group["rule"] and each.key.tool == group["tool"]
                and each.key.place == group["place"] and each.key.party == group["party"]]  # fmt: skip
        assert group["count"] == len(same)
        first = min((each.file, each.line or 1 << 60) for each in same)
        assert group["first"] == [first[0], first[1] % (1 << 60)]
        for number, at in group["samples"]:
            assert data["messages"][number]["findings"][at]["rule"] == group["rule"]


def test_memory_is_bounded(checked: list[CheckedMessage], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times as many messages, with names of their own, give a digest of nearly the same size."""
    for name, value in SMALL.items():
        monkeypatch.setattr(page_digest, name, value)
    monkeypatch.setattr(page_digest, "MOST_SERVERS", 5)
    sizes = []
    for times in (10, 100):
        digest = PageDigest(REDACTOR)
        for number in range(times):
            for each in checked[:300]:
                server = f"server {number}"
                found = tuple(
                    replace(finding, key=finding.key._replace(server=server, place=f"{finding.key.place}/{number}"))
                    for finding in each.findings
                )
                digest.add(each._replace(server=server, file=f"file {number}", findings=found))
        sizes.append(len(pickle.dumps(digest)))
    # Up to twice 4,096 ranks of conversations are kept, to count them.
    assert sizes[1] < sizes[0] + 2 * 4096 * 12


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────────────


@law(100)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4))), st.integers(1, 10))
def test_the_smallest_are_the_same_in_parts(added: list[tuple[int, int]], most: int) -> None:
    whole: Smallest[int, list[int]] = Smallest(most)
    parts = [Smallest[int, list[int]](most) for _ in range(5)]
    for key, part in added:
        for each in (whole, parts[part]):
            counted = each.get(key)
            if counted is None and each.admits((rank(key),)):
                counted = [0]
                each.put(key, (rank(key),), counted)
            if counted is not None:
                counted[0] += 1

    def add(mine: list[int], other: list[int]) -> None:
        mine[0] += other[0]

    merged: Smallest[int, list[int]] = Smallest(most)
    for each in parts:
        merged.merge(each, add)
    keys = sorted({key for key, _ in added}, key=rank)
    expected = [(key, [sum(each == key for each, _ in added)]) for key in keys[:most]]
    assert list(whole) == expected
    assert list(merged) == expected
    assert whole.is_partial == merged.is_partial == (len(keys) > most)


def test_distinct_things_are_counted() -> None:
    count = DistinctCount(100)
    for number in (*range(50), *range(50)):
        count.add(rank(number))
    assert (count.count, count.is_exact) == (50, True)
    for number in range(20_000):
        count.add(rank(number))
    assert not count.is_exact
    assert 15_000 < count.count < 25_000


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
@given(st.lists(st.tuples(st.integers(0, 10**14), st.booleans()), min_size=1))
def test_times_are_counted_in_the_same_buckets_in_parts(times: list[tuple[int, bool]]) -> None:
    whole, parts = TimeBuckets(), (TimeBuckets(), TimeBuckets(), TimeBuckets())
    for number, (time, has_findings) in enumerate(times):
        whole.add(time, has_findings=has_findings)
        parts[number % 3].add(time, has_findings=has_findings)
    for each in parts[1:]:
        parts[0].merge(each)
    assert (parts[0].width, parts[0].as_json()) == (whole.width, whole.as_json())
    points = whole.as_json()
    assert sum(each[1] for each in points) == len(times)
    assert (points[-1][0] - points[0][0]) // whole.width < 240
    if whole.width > 1:
        # The smallest width that fits.
        half = whole.width // 2
        assert max(each for each, _ in times) // half - min(each for each, _ in times) // half >= 240


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
    text = shortened(outer, [("way", "2", "to", "the fault")], REDACTOR, most)
    assert '"the fault":17' in text
    assert len(text) < most + 2000


def test_no_secret_is_cut_in_half() -> None:
    token = "ghp_" + "a1B2" * 9
    for before in range(3940, 4010, 3):
        value = {"text": "x " * (before // 2) + token, "rest": ["y" * 9000] * 30, "fault": 1}
        assert "ghp_a1B2" not in shortened(value, [("fault",)], REDACTOR, 4000)


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
    try:
        return main(["report", *arguments])
    except SystemExit as error:
        return int(error.code or 0)


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    recording(tmp_path / "bad.jsonl", call(1, {"n": "x"}), answer(1))
    return "bad.jsonl"


def test_the_command_says_what_it_has_written(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(bad) == 0
    done = capsys.readouterr()
    assert done.out == ""
    assert re.fullmatch(
        r"assay report: assay-report\.html \(\d+ kB\): "
        r"Enforce mode would have blocked 1 of 7 messages \(1 call\)\.\n",
        done.err,
    )
    assert data_in(Path("assay-report.html").read_text(encoding="utf-8"))["totals"]["error"] == 1


def test_a_page_can_go_to_standard_output(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(bad, "-o", "-") == 0
    done = capsys.readouterr()
    assert done.out.startswith("<!doctype html>\n")
    assert done.out.endswith("</html>\n")
    assert done.err.startswith("assay report: standard output: Enforce mode would have blocked 1 of 7 messages")
    assert not Path("assay-report.html").exists()


def test_the_exit_status_follows_fail_on(bad: str) -> None:
    assert report(bad, "--fail-on", "refuse") == 1
    assert report("nowhere.jsonl") == 2


@rows("files", [["bad.jsonl"], ["."], ["*.jsonl"]])
def test_a_recording_is_never_replaced(files: list[str], bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(bad).read_bytes()
    assert report(*files, "-o", "./bad.jsonl") == 2
    assert Path(bad).read_bytes() == before
    assert capsys.readouterr().err == "assay report: ./bad.jsonl: the page would replace a recording\n"


def test_the_same_recording_gives_the_same_page(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert report(bad, "-o", "1.html") == report(bad, "-o", "2.html") == 0
    page = Path("1.html").read_text(encoding="utf-8")
    assert page == Path("2.html").read_text(encoding="utf-8")
    assert data_in(page)["generator"]["made"] == "1970-01-01 00:00 UTC"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    report(bad, "-o", "3.html")
    made = data_in(Path("3.html").read_text(encoding="utf-8"))["generator"]["made"]
    assert made.startswith(str(datetime.now(UTC).year))


def test_known_findings_are_marked(bad: str) -> None:
    assert main(["check", "--write-baseline", "known.json", bad]) == 0
    assert report(bad, "--baseline", "known.json", "--fail-on", "report") == 0
    data = data_in(Path("assay-report.html").read_text(encoding="utf-8"))
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
    data = data_in(Path("two.html").read_text(encoding="utf-8"))
    assert data["totals"]["conversations"] == 2
    assert sorted(each["messages"] for each in data["talks"]) == [1, 1]
    [request] = [row for talk in data["talks"] for row in talk["rows"] if row[3] == "request"]
    assert request[7] is None
