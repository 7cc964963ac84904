"""The journals of several servers: listed, found by name, and followed over restarts and new runs."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from assay.judge.conversation import Conversation
from assay.model.names import folder_of
from assay.model.verdict import Party
from assay.records.journal import Journal
from assay.records.run_files import runs_in
from assay.records.tally import ReadBudget
from assay.settings.state_directory import server_folder
from kit.command import assay_text
from kit.places import GOLDEN
from kit.records import open_journal

LINES = GOLDEN.read_bytes().splitlines(keepends=True)
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":%d,"result":{}}'


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
    return open_journal(folder or server_folder(os.environ, server) or "", server=server)


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


def run(second: int, server: str, *answers: bytes | None, folder: str | None = None) -> str:
    """A run that has ended; its id."""
    journal = begun(server, folder)
    for number, answer in enumerate(answers):
        said(journal, number, answer)
    journal.close()
    return named(journal, second)


def journal(*arguments: str) -> CompletedProcess[str]:
    """Run `assay journal`."""
    return assay_text("journal", *arguments)


def listed(*options: str) -> dict[str, Any]:
    done = journal("list", "--format", "json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shown(*options: str) -> tuple[str, str]:
    done = journal("show", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# ── list ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_of_all_servers_are_listed_newest_first() -> None:
    first = run(1, "files", None, b"garbage", None)
    second = run(2, "time server", None)
    run(3, "time server")
    printed = journal("list")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert [line.split()[-4:] for line in printed.stdout.splitlines()[2:4]] == [
        ["2", "0", "0", second],
        ["6", "1", "1", first],
    ]
    assert "time server  2026-11-16 18:00" in printed.stdout
    assert printed.stdout.splitlines()[-1] == "3 runs of 2 servers; times are in local time (UTC+00:00)"
    [row] = listed("--server", "files")["runs"]
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


def test_runs_of_one_second_are_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    """Their names have no order, since an id is random."""
    idents = [run(1, "files", *number * [None]) for number in range(1, 7)]
    for number, ident in enumerate(idents):
        [path] = (tmp_path / "state/assay/servers/files").glob(f"*{ident}.jsonl")
        os.utime(path, (number, number))
    for options in ([], ["--server", "files"]):
        assert [row["run"] for row in listed(*options)["runs"]] == idents[::-1]
    assert f"-{idents[-1]}.jsonl" in shown("--server", "files")[1]


def test_a_journal_with_several_servers_names_them(tmp_path: Path) -> None:
    made = begun("", str(tmp_path / "mixed"))
    made.name_route("stdio", "one")
    said(made, 1)
    made.close()
    text = Path(made.path).read_bytes()
    Path(made.path).write_bytes(text + text.replace(b'"one"', b'"the \\"other\\""'))
    assert [row["servers"] for row in listed(str(tmp_path / "mixed"))["runs"]] == [["one", 'the "other"']]
    out, _ = shown(made.path, "--server", "one")
    assert "2 of 4 records: 2 ok" in out
    assert out.splitlines()[0].split()[:3] == ["time", "server", "who"]


def test_flights_and_runs_that_are_written_are_marked(tmp_path: Path) -> None:
    made = begun("files")
    assert [row["writing"] for row in listed()["runs"]] == [True]
    assert journal("list").stdout.splitlines()[1].endswith("  writing")
    made.close()
    assert [row["writing"] for row in listed()["runs"]] == [False]
    flights = tmp_path / "state/assay/servers/files/flights"
    flights.mkdir()
    (flights / "flight-20261116T180000Z-1.jsonl").write_text("{}\n")
    (flights / "mine.jsonl").write_text("{}\n")
    [flight] = listed()["flights"]
    assert flight["servers"] == ["files"]
    assert journal("list").stdout.splitlines()[-1] == flight["file"]


def test_what_is_not_a_journal_does_not_hide_the_others(tmp_path: Path) -> None:
    """A binary file with the name of a run is printed in a line; a link is not followed."""
    good = run(1, "files", None)
    folder = tmp_path / "state/assay/servers/files"
    binary = folder / "20261116T180002Z-00000002.jsonl"
    binary.write_bytes(bytes(range(256)) * 100)
    (folder / "20261116T180003Z-00000003.jsonl").symlink_to("/etc/hostname")
    (folder / "notes.txt").write_text("mine")
    printed = journal("list")
    assert (printed.returncode, printed.stderr) == (0, f"assay journal: {binary}: not a journal\n")
    assert [line.split()[-1] for line in printed.stdout.splitlines()[1:-1]] == [good]
    for make, status, words in (
        (Path.mkdir, 0, "no journals yet; assay guard -- COMMAND writes one"),
        (Path.rmdir, 2, "No such file or directory"),
        (Path.touch, 2, "Not a directory"),
    ):
        make(tmp_path / "d")
        printed = journal("list", str(tmp_path / "d"))
        assert (printed.returncode, printed.stdout, printed.stderr.count("\n")) == (status, "", 1)
        assert words in printed.stderr


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


def test_a_directory_that_cannot_be_read_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given, and among those of the servers."""
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        monkeypatch.chdir(place)
        hidden = Path(place, "assay/servers/hidden")
        hidden.mkdir(parents=True)
        # What is imported on the way is read now, while we may.
        monkeypatch.setenv("XDG_STATE_HOME", place)
        assert [journal("list", *each).returncode for each in ((), (str(hidden),), ("nowhere",))] == [0, 0, 2]
        hidden.chmod(0)
        for options, status in (([], 0), ([str(hidden)], 2)):
            with as_somebody():
                printed = journal("list", *options)
            assert (printed.returncode, printed.stdout) == (status, "")
            assert f"{hidden}: Permission denied\n" in printed.stderr
        hidden.chmod(0o700)


def test_an_unknown_server_gets_the_likely_one_and_the_known_ones() -> None:
    for known in ("there are no journals yet", "did you mean filesystem? (known: filesystem, time)"):
        for command in (["show"], ["show", "--follow"], ["list"]):
            done = journal(*command, "--server", "filesytem")
            about = f"assay journal: --server filesytem: no journal of this server; {known}\n"
            assert (done.returncode, done.stderr) == (2, about)
        run(1, "filesystem", None)
        run(2, "time", None)


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_counts_are_those_of_the_records_and_many_bytes_are_estimated(tmp_path: Path) -> None:
    """A payload cannot pretend to be a member."""
    forged = json.loads(LINES[7])
    forged["metadata"]["frame"] = '{"status":"refused","server":"other","more":7,"rule":"x"}'
    file = tmp_path / "20261116T180000Z-00000000.jsonl"
    content = GOLDEN.read_bytes() + json.dumps(forged, separators=(",", ":")).encode() + b"\n"
    file.write_bytes(content)
    records = [json.loads(line) for line in LINES]
    findings = sum(len(each["error"]["violations"]) for each in records if each["error"])
    [row] = listed(str(tmp_path))["runs"]
    blocked = sum(each["status"] == "refused" for each in records)
    assert (row["messages"], row["findings"], row["blocked"]) == (len(LINES) + 1, findings, blocked)
    assert row["servers"] == []
    file.write_bytes(content * 20)
    [many] = runs_in(str(tmp_path))
    exact, estimated = ReadBudget(many.size).tally(many), ReadBudget(many.size - 1).tally(many)
    assert (exact.messages, exact.exact, estimated.exact) == (20 * row["messages"], True, False)
    assert 0.8 * exact.messages < estimated.messages < 1.2 * exact.messages


def test_a_table_of_runs_fits_the_terminal() -> None:
    """A name is whole, since it is what --server takes; one that is too long has a line of its own."""
    name = "n" * 50
    run(1, name, None)
    run(2, "files", None)
    for columns in (60, 74, 80, 100, 200):
        printed = assay_text("journal", "list", on_terminal=True, COLUMNS=str(columns), NO_COLOR="1").stdout
        lines = printed.splitlines()
        assert max(map(len, lines)) <= columns
        assert {"files", name} <= {line.split(" ")[0] for line in lines}


# ── show ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_file_it_is_the_newest_run_that_is_not_empty() -> None:
    run(1, "files", None, None)
    ident = run(2, "time", None)
    run(3, "files")
    out, err = shown()
    assert "2 records: 2 ok" in out
    assert err.endswith(f"-{ident}.jsonl, of time\n")
    assert err.startswith("assay journal: showing /")
    out, err = shown("--server", "files")
    assert "4 records: 4 ok" in out
    out, err = shown("--all")
    assert "6 records: 6 ok" in out
    assert out.splitlines()[0].split()[1] == "server"


def test_the_newest_or_the_configured_journal_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(1, "files", None)
    run(2, "assets", None, None, folder="runs/mcp_server/envelope_validation")
    assert "4 records" in shown()[0]
    run(3, "files", None)
    assert "2 records" in shown()[0]
    run(1, "another", None, None, folder=str(tmp_path / "j"))
    monkeypatch.setenv("ASSAY_JOURNAL", str(tmp_path / "j"))
    assert "4 records" in shown()[0]
    assert "2 records" in shown("--server", "files")[0]


def test_a_run_is_found_by_its_id_and_a_server_by_its_name_or_folder() -> None:
    ident = run(1, "my server!", None)
    run(2, "my-server", None, None)
    begun("empty!").close()
    assert "2 records" in shown(ident)[0]
    assert journal("diff", ident, ident).stdout == "no differences in 2 records\n"
    for name, count in ((folder_of("my server!"), 2), ("my server!", 2), ("my-server", 4)):
        assert f"{count} records" in shown("--server", name)[0]
    assert listed("--server", "empty!")["runs"][0]["servers"] == [folder_of("empty!")]


def test_all_files_of_a_run_are_shown_where_the_first_is_gone(tmp_path: Path) -> None:
    for number in (2, 3):
        (tmp_path / f"20261116T180000Z-00000000.{number:04}.jsonl").write_bytes(LINES[1])
    assert "2 records" in shown(str(tmp_path))[0]


def test_replay_takes_the_same_journal() -> None:
    run(1, "files", None)
    done = assay_text("replay")
    replaying, missing = done.stderr.splitlines()
    assert (done.returncode, replaying.startswith("assay replay: replaying /")) == (2, True)
    assert missing.endswith(
        "2 (no payload in the journal); a guard or server writes them with --set journal.payloads=true"
    )


# ── payloads and quarantined entries ─────────────────────────────────────────────────────────────────────────────────


def test_payloads_are_shown_below_each_record_and_long_ones_are_cut(tmp_path: Path) -> None:
    out, err = shown(str(GOLDEN), "--payloads", "--tool", "find_books")
    assert ('        "method": "tools/call",' in out.splitlines(), "(secrets are hidden)" in out, err) == (
        True,
        True,
        "",
    )
    record = json.loads(LINES[7])
    record["metadata"]["frame"] = json.dumps({"values": list(range(100))})
    (tmp_path / "long.jsonl").write_text(json.dumps(record) + "\n")
    assert "(74 more lines; --wide shows them)" in shown(str(tmp_path / "long.jsonl"), "--payloads")[0]
    assert "          99" in shown(str(tmp_path / "long.jsonl"), "--payloads", "--wide")[0].splitlines()
    run(1, "files", None, None)
    assert shown("--payloads")[1].splitlines()[1:] == [
        "assay journal: no payloads in this journal; a guard or server writes them with --set journal.payloads=true"
    ]


def test_lists_with_quarantined_entries_can_be_chosen(tmp_path: Path) -> None:
    record = json.loads(LINES[9])
    record["error"]["quarantined"] = [{"kind": "tool", "name": "legacy"}, {"kind": "tool", "name": "bad"}]
    (tmp_path / "q.jsonl").write_text(json.dumps(record) + "\n" + LINES[9].decode())
    out, _ = shown(str(tmp_path / "q.jsonl"), "--quarantined")
    assert "    quarantined: tool legacy, tool bad" in out.splitlines()
    assert "1 of 2 records: 1 blocked" in out
