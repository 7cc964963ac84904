"""The journals of several servers: listed, found by name, and followed over restarts and new runs."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from assay.base.server_names import folder_of
from assay.base.verdict import Party
from assay.cli.main import main
from assay.cli.terminal.run_tables import RunRow, RunTable
from assay.cli.terminal.style import Style
from assay.core.conversation import Conversation
from assay.records.journal.following import Following
from assay.records.journal.runs import JournalRun, runs_in
from assay.records.journal.tally import ReadBudget, Tally, servers_in
from assay.records.journal.writer import Journal
from assay.settings.state_directory import server_folder
from kit.outputs import Terminal
from kit.places import GOLDEN

LINES = GOLDEN.read_bytes().splitlines(keepends=True)
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":%d,"result":{}}'

LATER = 1e12
"""A time before which all runs of these tests begin."""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state directory and a working directory of the test's own, and nothing configured."""
    monkeypatch.delenv("ASSAY_JOURNAL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


def begun(server: str, folder: str | None = None) -> Journal:
    """A new journal of the server called *server*."""
    journal = Journal.open(folder or server_folder(os.environ, server) or "", server=server)
    assert journal is not None
    return journal


def said(journal: Journal, number: int, answer: bytes | None = None) -> None:
    """A ping and its answer, or another *answer*, are written."""
    conversation = Conversation(revision="2025-11-25")
    asked = conversation.hear(Party.CLIENT, PING % number)
    verdict = conversation.hear(Party.SERVER, PONG % number if answer is None else answer)
    moment = journal.moment("stdio", "stdio", "ping", asked.frame)
    journal.write(journal.line(asked, moment, 1) + journal.line(verdict, moment, 1))


def named(journal: Journal, second: int) -> str:
    """The id of the run, which from now on has begun at this *second*: those of one second have no order."""
    path = Path(journal.path)
    path.rename(path.with_name(f"20261116T1800{second:02}Z-{path.stem[-8:]}.jsonl"))
    return path.stem[-8:]


def run(second: int, server: str, *answers: bytes | None) -> str:
    """A run that has ended; its id."""
    journal = begun(server)
    for number, answer in enumerate(answers):
        said(journal, number, answer)
    journal.close()
    return named(journal, second)


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert main(["journal", "list", "--format", "json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# ── list ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_of_all_servers_are_listed_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    first = run(1, "files", None, b"garbage", None)
    second = run(2, "time server", None)
    run(3, "time server")
    assert main(["journal", "list"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert [line.split()[-4:] for line in printed.out.splitlines()[2:4]] == [
        ["2", "0", "0", second],
        ["6", "1", "1", first],
    ]
    assert "time server  2026-11-16 18:00" in printed.out
    assert printed.out.splitlines()[-1] == "3 runs of 2 servers; times are in local time (UTC+00:00)"
    [row] = listed(capsys, "--server", "files")["runs"]
    assert row | {"bytes": 0, "files": []} == {
        "run": first,
        "servers": ["files"],
        "start": "2026-11-16T18:00:01Z",
        "mode": None,
        "messages": 6,
        "findings": 1,
        "blocked": 1,
        "wouldBlock": 0,
        "exact": True,
        "writing": False,
        "bytes": 0,
        "files": [],
    }


def test_runs_of_one_second_are_in_the_order_in_which_they_were_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Their names have no order, since an id is random."""
    idents = [run(1, "files", *number * [None]) for number in range(1, 7)]
    for number, ident in enumerate(idents):
        [path] = (tmp_path / "state/assay/servers/files").glob(f"*{ident}.jsonl")
        os.utime(path, (number, number))
    for options in ([], ["--server", "files"]):
        assert [row["run"] for row in listed(capsys, *options)["runs"]] == idents[::-1]
    assert f"-{idents[-1]}.jsonl" in shown(capsys, "--server", "files")[1]


def test_a_run_that_is_written_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    journal = begun("files")
    try:
        assert [row["writing"] for row in listed(capsys)["runs"]] == [True]
        assert main(["journal", "list"]) == 0
        assert capsys.readouterr().out.splitlines()[1].endswith("  writing")
    finally:
        journal.close()
    assert [row["writing"] for row in listed(capsys)["runs"]] == [False]


def test_flights_are_listed_beside_the_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(1, "files", None)
    flights = tmp_path / "state/assay/servers/files/flights"
    flights.mkdir()
    (flights / "flight-20261116T180000Z-1.jsonl").write_text("{}\n")
    (flights / "mine.jsonl").write_text("{}\n")
    [flight] = listed(capsys)["flights"]
    assert flight["servers"] == ["files"]
    assert main(["journal", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == flight["file"]


def test_a_journal_with_several_servers_names_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    journal = begun("", str(tmp_path / "mixed"))
    journal.name_route("stdio", "one")
    said(journal, 1)
    journal.close()
    text = Path(journal.path).read_bytes()
    Path(journal.path).write_bytes(text + text.replace(b'"one"', b'"the \\"other\\""'))
    assert [row["servers"] for row in listed(capsys, str(tmp_path / "mixed"))["runs"]] == [["one", 'the "other"']]
    assert main(["journal", "show", journal.path, "--server", "one"]) == 0
    shown = capsys.readouterr().out
    assert "2 of 4 records: 2 ok" in shown
    assert shown.splitlines()[0].split()[:3] == ["time", "server", "who"]


@pytest.mark.parametrize(
    ("make", "status", "words"),
    [
        (lambda path: path.mkdir(), 0, "no journals yet; assay guard -- COMMAND writes one"),
        (lambda _: None, 2, "No such file or directory"),
        (lambda path: path.write_text("x"), 2, "Not a directory"),
        (lambda path: path.symlink_to("nowhere"), 2, "No such file or directory"),
    ],
    ids=["empty", "missing", "a-file", "a-dead-link"],
)
def test_a_directory_without_journals_is_one_line(
    make: Callable[[Path], None], status: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "d")
    assert main(["journal", "list", str(tmp_path / "d")]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert words in printed.err


def test_what_is_not_a_journal_does_not_hide_the_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A binary file with the name of a run is printed in a line; a link is not followed."""
    good = run(1, "files", None)
    folder = tmp_path / "state/assay/servers/files"
    binary = folder / "20261116T180002Z-00000002.jsonl"
    binary.write_bytes(bytes(range(256)) * 100)
    (folder / "20261116T180003Z-00000003.jsonl").symlink_to("/etc/hostname")
    (folder / "notes.txt").write_text("mine")
    assert main(["journal", "list"]) == 0
    printed = capsys.readouterr()
    assert printed.err == f"assay journal: {binary}: not a journal\n"
    assert [line.split()[-1] for line in printed.out.splitlines()[1:-1]] == [good]


@contextmanager
def as_somebody() -> Iterator[None]:
    """As a user who cannot read everything, as root can."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_directory_that_cannot_be_read_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given, and among those of the servers."""
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        monkeypatch.chdir(place)
        hidden = Path(place, "assay/servers/hidden")
        hidden.mkdir(parents=True)
        # What is imported on the way is read now, while we may.
        monkeypatch.setenv("XDG_STATE_HOME", place)
        assert main(["journal", "list"]) == main(["journal", "list", str(hidden)]) == 0
        assert main(["journal", "list", "nowhere"]) == 2
        capsys.readouterr()
        hidden.chmod(0)
        with as_somebody():
            for options, status in (([], 0), ([str(hidden)], 2)):
                assert main(["journal", "list", *options]) == status
                printed = capsys.readouterr()
                assert printed.out == ""
                assert f"{hidden}: Permission denied\n" in printed.err
        hidden.chmod(0o700)


def test_an_unknown_server_gets_the_likely_one_and_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    run(1, "filesystem", None)
    run(2, "time", None)
    for command in (["show"], ["show", "--follow"], ["list"]):
        assert main(["journal", *command, "--server", "filesytem"]) == 2
        assert capsys.readouterr().err == (
            "assay journal: --server filesytem: no journal of this server; did you mean filesystem?"
            " (known: filesystem, time)\n"
        )


def test_an_unknown_server_without_any_journal_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "list"):
        assert main(["journal", command, "--server", "files"]) == 2
        assert capsys.readouterr().err == (
            "assay journal: --server files: no journal of this server; there are no journals yet\n"
        )


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def golden(tmp_path: Path, times: int) -> JournalRun:
    (tmp_path / "20261116T180000Z-00000000.jsonl").write_bytes(GOLDEN.read_bytes() * times)
    [found] = runs_in(str(tmp_path))
    return found


def test_counts_are_those_of_the_records(tmp_path: Path) -> None:
    records = [json.loads(line) for line in LINES]
    found = sum(len(each["error"]["violations"]) for each in records if each["error"])
    refused = sum(each["status"] == "refused" for each in records)
    assert ReadBudget().tally(golden(tmp_path, 1)) == Tally(len(LINES), found, refused)


def test_many_bytes_are_counted_without_parsing_and_more_are_estimated(tmp_path: Path) -> None:
    whole = golden(tmp_path, 20)
    exact = ReadBudget(whole.size).tally(whole)
    assert exact.exact
    budget = ReadBudget(whole.size - 1)
    estimated = budget.tally(whole)
    assert not estimated.exact
    assert budget.left == whole.size - 1
    assert 0.8 * exact.messages < estimated.messages < 1.2 * exact.messages
    assert 0.8 * exact.findings < estimated.findings < 1.2 * exact.findings


def test_a_payload_cannot_pretend_to_be_a_member(tmp_path: Path) -> None:
    record = json.loads(LINES[7])
    record["metadata"]["frame"] = '{"status":"refused","server":"other","more":7,"rule":"x"}'
    (tmp_path / "20261116T180000Z-00000000.jsonl").write_text(json.dumps(record, separators=(",", ":")) + "\n")
    [found] = runs_in(str(tmp_path))
    assert ReadBudget().tally(found) == Tally(1)
    assert servers_in(found.paths) == []


def test_a_table_of_runs_fits_the_terminal() -> None:
    def table(columns: str, *names: str, wide: bool = False, is_written: bool = True) -> list[str]:
        style = Style(Terminal(), {"COLUMNS": columns, "NO_COLOR": "1"})
        run = JournalRun("20261116T180000Z-00000000", 0, ("x",), 1)
        rows = [RunRow(run, (name,), Tally(123_456, 7_890, 12), is_written, "enforce") for name in names]
        return list(RunTable(style, wide=wide, utc=True).lines(rows, []))

    for columns in ("50", "60", "73", "74", "80", "100", "200"):
        for length in (4, 17, 50):
            lines = table(columns, "n" * length, "files")
            assert max(map(len, lines)) <= int(columns)
            # A name is whole, since it is what --server takes; one that is too long has a line of its own.
            assert any(line.split(" ")[0] == "n" * length for line in lines)
            assert [line.split()[-2:] for line in lines if "00000000" in line] == 2 * [["00000000", "writing"]]
    assert table("200", "n" * 64) == table("20", "n" * 64, wide=True)
    assert table("80", "assay.demo.server", is_written=False) == [
        "server             start        mode     messages  findings  blocked  run",
        "assay.demo.server  11-16 18:00  enforce   123,456     7,890       12  00000000",
        "1 run of 1 server; times are in UTC",
    ]


# ── show ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[str, str]:
    assert main(["journal", "show", *options]) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_without_a_file_it_is_the_newest_run_that_is_not_empty(capsys: pytest.CaptureFixture[str]) -> None:
    run(1, "files", None, None)
    ident = run(2, "time", None)
    run(3, "files")
    out, err = shown(capsys)
    assert "2 records: 2 ok" in out
    assert err.endswith(f"-{ident}.jsonl, of time\n")
    assert err.startswith("assay journal: showing /")
    out, err = shown(capsys, "--server", "files")
    assert "4 records: 4 ok" in out
    out, err = shown(capsys, "--all")
    assert "6 records: 6 ok" in out
    assert out.splitlines()[0].split()[1] == "server"


def test_the_asset_servers_journal_counts_where_it_is_newer(capsys: pytest.CaptureFixture[str]) -> None:
    run(1, "files", None)
    journal = begun("assets", "runs/mcp_server/envelope_validation")
    said(journal, 1)
    said(journal, 2)
    journal.close()
    named(journal, 2)
    assert "4 records" in shown(capsys)[0]
    run(3, "files", None)
    assert "2 records" in shown(capsys)[0]


def test_a_directory_that_is_configured_wins(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = begun("another", str(tmp_path / "j"))
    said(journal, 1)
    said(journal, 2)
    journal.close()
    named(journal, 1)
    run(2, "files", None)
    monkeypatch.setenv("ASSAY_JOURNAL", str(tmp_path / "j"))
    assert "4 records" in shown(capsys)[0]
    assert "2 records" in shown(capsys, "--server", "files")[0]


def test_a_run_is_found_by_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    ident = run(1, "files", None)
    run(2, "files", None, None)
    assert "2 records" in shown(capsys, ident)[0]
    assert main(["journal", "diff", ident, ident]) == 0
    assert capsys.readouterr().out == "no differences in 2 records\n"


def test_a_server_is_found_by_its_folder_too(capsys: pytest.CaptureFixture[str]) -> None:
    run(1, "my server!", None)
    run(2, "my-server", None, None)
    assert "2 records" in shown(capsys, "--server", folder_of("my server!"))[0]
    assert "2 records" in shown(capsys, "--server", "my server!")[0]
    assert "4 records" in shown(capsys, "--server", "my-server")[0]


def test_a_server_without_records_is_found_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    begun("my server!")
    [row] = listed(capsys, "--server", "my server!")["runs"]
    assert row["servers"] == [folder_of("my server!")]


def test_all_files_of_a_run_are_shown_where_the_first_is_gone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number in (2, 3):
        (tmp_path / f"20261116T180000Z-00000000.{number:04}.jsonl").write_bytes(LINES[1])
    assert "2 records" in shown(capsys, str(tmp_path))[0]


def test_replay_takes_the_same_journal(capsys: pytest.CaptureFixture[str]) -> None:
    run(1, "files", None)
    assert main(["replay"]) == 2
    printed = capsys.readouterr().err.splitlines()
    assert printed[0].startswith("assay replay: replaying /")
    assert printed[1].endswith("2 without payloads; a guard or server writes them with --set journal.payloads=true")


# ── payloads and quarantined entries ─────────────────────────────────────────────────────────────────────────────────


def test_payloads_are_shown_below_each_record(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(capsys, str(GOLDEN), "--payloads", "--tool", "find_books")
    assert '        "method": "tools/call",' in out.splitlines()
    assert "(secrets are hidden)" in out
    assert err == ""


def test_a_long_payload_is_cut_unless_all_is_wanted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record = json.loads(LINES[7])
    record["metadata"]["frame"] = json.dumps({"values": list(range(100))})
    (tmp_path / "long.jsonl").write_text(json.dumps(record) + "\n")
    out, _ = shown(capsys, str(tmp_path / "long.jsonl"), "--payloads")
    assert "(74 more lines; --wide shows them)" in out
    out, _ = shown(capsys, str(tmp_path / "long.jsonl"), "--payloads", "--wide")
    assert "          99" in out.splitlines()


def test_a_journal_without_payloads_says_once_how_to_get_them(capsys: pytest.CaptureFixture[str]) -> None:
    run(1, "files", None, None)
    _, err = shown(capsys, "--payloads")
    assert err.splitlines()[1:] == [
        "assay journal: no payloads in this journal; a guard or server writes them with --set journal.payloads=true"
    ]


def test_lists_with_quarantined_entries_can_be_chosen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record = json.loads(LINES[9])
    record["error"]["quarantined"] = [{"kind": "tool", "name": "legacy"}, {"kind": "tool", "name": "bad"}]
    (tmp_path / "q.jsonl").write_text(json.dumps(record) + "\n" + LINES[9].decode())
    out, _ = shown(capsys, str(tmp_path / "q.jsonl"), "--quarantined")
    assert "    quarantined: tool legacy, tool bad" in out.splitlines()
    assert "1 of 2 records: 1 blocked" in out


# ── follow ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_goes_on_in_a_further_file_is_followed(tmp_path: Path) -> None:
    first = begun("one")
    said(first, 1)
    [found] = runs_in(os.path.dirname(first.path))
    follower = Following(lambda: [os.path.dirname(first.path)], found, LATER)
    assert [news.entry.number for news in follower.arrived()] == [1, 2]
    Path(first.path.replace(".jsonl", ".0002.jsonl")).write_bytes(LINES[1])
    assert [news.entry.number for news in follower.arrived()] == [3]
    assert list(follower.arrived()) == []
    follower.close()
    first.close()


def test_what_was_written_before_is_passed_over_but_for_the_first(tmp_path: Path) -> None:
    old, living = begun("old"), begun("living")
    said(old, 1)
    said(living, 1)
    folders = [os.path.dirname(each.path) for each in (old, living)]
    follower = Following(lambda: folders, None, LATER)
    assert list(follower.arrived()) == []
    said(living, 2)
    assert [news.source.run.name for news in follower.arrived()] == 2 * [Path(living.path).stem]
    new = begun("old")
    said(new, 3)
    follower.look_around()
    assert [news.source.is_new for news in follower.arrived()] == [True, True]
    follower.close()
