"""`assay journal` and `assay replay`, as people use them."""

import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from time import tzset
from typing import Any

import orjson
import pytest

from assay.cli.main import main
from assay.cli.terminal.journal_table import JournalTable
from assay.cli.terminal.style import Style
from assay.judge.conversation import Conversation
from assay.model.verdict import Party
from assay.records.journal import Journal
from assay.records.record import Record, read_record
from kit import command as ours
from kit.command import variables_but
from kit.places import GOLDEN
from kit.rows import rows
from kit.talk import HITS, SEARCH, call, frame_of, request, result

PAYLOADS = b"a guard or server writes them with --set journal.payloads=true\n"

LINES = GOLDEN.read_bytes().splitlines(keepends=True)


def assay(*arguments: str, stdin: bytes = b"", cwd: Path | None = None, **environment: Any) -> Any:
    environment = {"COLUMNS": "100", "TZ": "UTC", **environment}
    return ours.assay(*arguments, said=stdin, cwd=cwd, env=variables_but("ASSAY_"), **environment)


def shown(*arguments: str, stdin: bytes = b"", **environment: Any) -> list[str]:
    """The lines that a command prints that ends well."""
    done = assay(*arguments, stdin=stdin, **environment)
    assert (done.returncode, done.stderr) == (0, b"")
    text: str = done.stdout.decode()
    return text.splitlines()


def changed(line: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    record = orjson.loads(line)
    change(record)
    return orjson.dumps(record) + b"\n"


# ── show ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_journal_is_shown_as_a_table_with_totals() -> None:
    lines = shown("journal", "show", str(GOLDEN))
    assert lines[0].split() == ["time", "who", "message", "verdict", "ms", "in", "out"]
    start = "1970-01-01 00:00:00.000+00:00  client  tools/call find_books #3 "
    assert f"{start}                 ok               0.00      115      115" in lines
    wrong = next(number for number, line in enumerate(lines) if "find_books #4" in line)
    assert lines[wrong + 1].startswith("    contract/input: `limit` must be an integer, not ")
    assert lines[wrong + 1].endswith(", at /params/arguments/limit")
    assert "56 records: 28 ok, 2 reported, 20 blocked, 6 failed" in lines
    assert "      2 × contract/input" in lines


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        """It is one, for those who ask."""
        return True


def records() -> list[Record]:
    return [each for each in map(read_record, LINES) if each is not None]


@rows("columns", ["20", "40", "56", "72", "80", "96", "120", "200"])
@rows("view", [{"utc": True}, {"utc": True, "servers": True, "payloads": True}], ids=["few", "all"])
def test_the_table_fits_the_terminal(columns: str, view: dict[str, bool]) -> None:
    style = Style(Terminal(), {"COLUMNS": columns, "NO_COLOR": "1"})
    table = JournalTable(style, **view)
    lines = [table.head(), *(line for record in records() for line in table.lines(record))]
    assert max(map(len, lines)) <= max(40, int(columns))
    assert lines.count("1970-01-01 (UTC)") == 1
    assert len([line for line in lines if line.startswith("00:00:00")]) == 56


def test_where_nothing_is_cut_a_line_has_all_of_it() -> None:
    """In a file, and on a terminal with --wide."""
    long = records()[9]
    long.method = "x" * 300
    assert long.error is not None
    long.error.violations *= 3
    for table in (JournalTable(Style(io.StringIO(), {})), JournalTable(Style(Terminal(), {}), wide=True)):
        lines = list(table.lines(long))
        assert "x" * 300 in lines[0]
        assert [line for line in lines if "contract/input:" in line] == 3 * lines[1:2]
    short = list(JournalTable(Style(Terminal(), {"COLUMNS": "80", "NO_COLOR": "1"})).lines(long))
    assert " (and 2 more)" in " ".join(short)


@rows(
    ("zone", "options", "time"),
    [
        ("Asia/Kolkata", [], "1970-01-01 05:30:00.000+05:30"),
        ("America/New_York", [], "1969-12-31 19:00:00.000-05:00"),
        ("America/New_York", ["--utc"], "1970-01-01 00:00:00.000Z"),
    ],
)
def test_times_are_local_and_have_their_date(
    zone: str, options: list[str], time: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TZ", zone)
    tzset()
    try:
        assert main(["journal", "show", str(GOLDEN), *options]) == 0
    finally:
        monkeypatch.undo()
        tzset()
    assert capsys.readouterr().out.splitlines()[1].startswith(f"{time}  ")


@rows(
    ("filters", "count"),
    [
        (["--verdict", "blocked"], 20),
        (["--verdict", "blocked", "--verdict", "failed"], 26),
        (["--tool", "find_books"], 18),
        (["--tool", "find_books", "--verdict", "failed"], 2),
        (["--rule", "contract"], 6),
        (["--rule", "contract", "--rule", "syntax/utf8"], 8),
        (["--method", "nope"], 0),
    ],
)
def test_filters_choose_records(filters: list[str], count: int) -> None:
    records = [orjson.loads(line) for line in shown("journal", "show", str(GOLDEN), "--format", "json", *filters)]
    assert len(records) == count
    total = shown("journal", "show", str(GOLDEN), *filters)
    assert any(line.startswith(f"{count} of 56 records") for line in total)


def test_as_json_the_lines_are_those_of_the_journal() -> None:
    for name in (str(GOLDEN), "-"):
        done = assay("journal", "show", "--format", "json", name, stdin=GOLDEN.read_bytes())
        assert done.stdout == GOLDEN.read_bytes()


def test_an_unknown_rule_is_named_with_the_likely_one() -> None:
    done = assay("journal", "show", "--rule", "contract/inptu", str(GOLDEN))
    assert done.returncode == 0
    assert b"--rule contract/inptu: no such rule; did you mean contract/input" in done.stderr
    assert done.stdout.startswith(b"0 of 56 records")


def test_without_a_name_it_is_the_newest_run(tmp_path: Path) -> None:
    place = tmp_path / "runs" / "mcp_server" / "envelope_validation"
    journal = Journal.open(place)
    assert journal is not None
    journal.write(LINES[1])
    journal.close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".latest").write_bytes(b"".join(LINES[:3]))
    (tmp_path / "assay.toml").write_text('[journal]\ndirectory = "other"\n')
    cases: list[tuple[list[str], dict[str, Any], bytes]] = [
        (["--config", os.devnull], {}, b"1 record:"),
        ([], {}, b"3 records:"),
        ([], {"ASSAY_JOURNAL": str(place)}, b"1 record:"),
        (["--set", f"journal.directory={place}"], {}, b"1 record:"),
        ([str(place)], {}, b"1 record:"),
        (["--config", os.devnull], {"ASSAY_JOURNAL": "off"}, b"1 record:"),
    ]
    for options, environment, count in cases:
        done = assay("journal", "show", *options, cwd=tmp_path, **environment)
        assert done.returncode == 0, done.stderr
        assert count in done.stdout


def test_where_there_is_none_it_says_so(tmp_path: Path) -> None:
    done = assay("journal", "show", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(b"/assay/servers: no journals yet\n")
    (tmp_path / "empty").mkdir()
    done = assay("journal", "show", "empty", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, b"assay journal show: empty: no journals yet\n")


@rows("name", ["xyz", "there/xyz", "20261116T180000Z-00000000.jsonl"])
@rows("command", [["journal", "show"], ["journal", "show", "--follow"], ["journal", "diff", str(GOLDEN)], ["replay"]])
def test_an_unknown_name_is_one_line_on_stderr(
    command: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, name]) == 2
    printed = capsys.readouterr()
    prefix = f"assay {' '.join(command[: 1 + (command[0] == 'journal')])}"
    assert printed.err == f"{prefix}: no run, file or directory {name}; assay journal list lists the runs\n"
    assert printed.out == ""


def test_a_line_that_was_cut_is_shown_as_such() -> None:
    cut = LINES[1] + b'{"a":1}\n' + LINES[2] + LINES[3][:100]
    lines = shown("journal", "show", "-", stdin=cut)
    assert "line 2: not a record (7 bytes)" in lines
    assert "line 4: not a record (100 bytes)" in lines
    assert "2 records: 1 ok, 1 blocked; 2 lines are not records" in lines
    done = assay("journal", "show", "--format", "json", "-", stdin=cut)
    assert done.stdout == LINES[1] + LINES[2]
    assert done.stderr.count(b"not a record") == 2


@rows("content", [b"", b"\n\n", b"\xff\n", b"[]\n", b'{"ts":1}\n', LINES[0].replace(b"{", b"")])
def test_what_has_no_record_is_not_a_journal_in_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for form in ("table", "json"):
        assert main(["journal", "show", "--format", form, str(path)]) == (2 if content.strip() else 0)
        printed = capsys.readouterr()
        wanted = f"assay journal: {path}: not a journal: no record in 1 line\n" if content.strip() else ""
        assert printed.err == wanted
        assert printed.out == ("0 records\n" if not wanted and form == "table" else "")
    path.unlink()
    path.symlink_to("file")
    assert main(["journal", "show", str(path)]) == 2
    assert capsys.readouterr().out == ""
    path.unlink()


@rows("metadata", [{"kind": []}, {"mode": {}}, {"passed": []}, {"tool": [1]}, {"id": {}}, {"party": "other"}])
def test_lines_of_strangers_are_shown_or_named(metadata: dict[str, Any]) -> None:
    def odd(record: dict[str, Any]) -> None:
        record["metadata"] |= metadata

    def later(record: dict[str, Any]) -> None:
        record["status"], record["ts"] = "odd", "soon"

    found = changed(LINES[9], later) + changed(LINES[9], odd)
    lines = shown("journal", "show", "-", stdin=found)
    assert any("reported" in line for line in lines)
    assert any("line 2: not a record" in line for line in lines)


def test_what_a_peer_has_said_cannot_act_upon_the_terminal() -> None:
    def hostile(record: dict[str, Any]) -> None:
        record["method"] = "\x1b]0;gotcha\x07\x1b[2J\nnext"
        record["metadata"]["tool"] = "\u202e\x9b"
        record["status"] = "\x1b[31m"
        record["error"]["violations"][0]["found"] = "\r\x1b[1A"
        record["error"]["violations"][0]["rule"] = "\x1b[5m/\x07"

    for command in (["show", "-"], ["diff", "-", str(GOLDEN)]):
        text = assay("journal", *command, stdin=changed(LINES[9], hostile)).stdout.decode()
        assert all(line.isprintable() for line in text.splitlines())


# ── follow ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("form", ["table", "json"])
def test_a_journal_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    path = tmp_path / "live.jsonl"
    path.write_bytes(LINES[1])
    parts = iter([LINES[5][:50], LINES[5][50:] + LINES[7], b""])

    def pause() -> None:
        """Have the journal grow, and interrupt the command at last."""
        part = next(parts, None)
        if part is None:
            raise KeyboardInterrupt
        with path.open("ab") as file:
            file.write(part)

    monkeypatch.setattr("assay.cli.journal_show._pause", pause)
    done = assay("journal", "show", "--follow", "--format", form, str(path))
    assert (done.returncode, done.stderr) == (130, b"")
    assert len(re.findall(rb'tools/list #2|"method":"tools/list","status"', done.stdout)) == 1
    assert b"tools/call" in done.stdout
    assert (b"3 records: 3 ok" in done.stdout) is (form == "table")


# ── diff ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def differing(tmp_path: Path, one: bytes, other: bytes, *options: str) -> tuple[int, list[str]]:
    (tmp_path / "a").write_bytes(one)
    (tmp_path / "b").write_bytes(other)
    done = assay("journal", "diff", *options, str(tmp_path / "a"), str(tmp_path / "b"))
    assert done.stderr == b""
    return done.returncode, done.stdout.decode().splitlines()


def test_two_runs_are_the_same_whatever_their_times_ids_and_modes(tmp_path: Path) -> None:
    """The mode is in every record but those of older journals."""

    def later(record: dict[str, Any]) -> None:
        record |= {
            "ts": "2026-01-01T00:00:00.000000Z",
            "durationMs": 3.5,
            "requestId": "x",
            "traceId": "y",
            "spanId": "z",
        }
        record["metadata"] |= {"session": "other", "http": {"headers": {"Mcp-Session-Id": "other"}}, "mode": "audit"}

    again = b"".join(changed(line, later) for line in LINES)
    for other in (again, again.replace(b'"mode":"audit"', b'"mode":"enforce"')):
        for one in (b"".join(LINES), again):
            assert differing(tmp_path, one, other) == (0, ["no differences in 56 records"])


def test_a_field_that_differs_is_shown_with_both_values(tmp_path: Path) -> None:
    def other(record: dict[str, Any]) -> None:
        record["status"] = "ok"
        record["error"]["violations"][0]["at"] = "/other"
        record["metadata"]["tool"] = None

    edited = [*LINES[:9], changed(LINES[9], other), *LINES[10:]]
    status, lines = differing(tmp_path, b"".join(LINES), b"".join(edited))
    assert status == 1
    assert lines == [
        "line 10: client tools/call find_books #4",
        '    status: "refused" → "ok"',
        '    error.violations.0.at: "/params/arguments/limit" → "/other"',
        '    metadata.tool: "find_books" → null',
        "1 difference in 56 records",
    ]


def test_lines_that_one_of_them_lacks_do_not_hide_what_is_the_same(tmp_path: Path) -> None:
    status, lines = differing(tmp_path, b"".join(LINES), b"".join([*LINES[:3], *LINES[5:], LINES[7]]))
    assert status == 1
    assert lines == [
        "line 4: only in A: server result of initialize #1",
        "line 5: only in A: client notifications/initialized",
        "line 55: only in B: client tools/call find_books #3",
        "3 differences in 56 and 55 records",
    ]


def test_stdio_can_be_compared_with_http(tmp_path: Path) -> None:
    def carried(record: dict[str, Any]) -> None:
        record["metadata"] |= {"principal": "alice", "http": {"method": "POST", "headers": {"Accept": "*/*"}}}

    stdio, http = b"".join(LINES[:28]), b"".join(changed(line, carried) for line in LINES[28:])
    assert differing(tmp_path, stdio, http, "--across-transports") == (0, ["no differences in 28 records"])
    status, lines = differing(tmp_path, stdio, http)
    assert status == 1
    assert '    route: "stdio" → "/mcp"' in lines
    assert "28 differences in 28 records" in lines


def test_long_journals_are_compared_line_by_line(tmp_path: Path) -> None:
    record = orjson.loads(LINES[7])
    many = [orjson.dumps({**record, "inputBytes": number}) + b"\n" for number in range(5000)]
    status, lines = differing(tmp_path, b"".join(many), b"".join(reversed(many)))
    assert (status, lines[-1]) == (1, "5,000 differences in 5,000 records")


@rows("content", [b"", b"hello\n", b'{"dir":"c2s","msg":"x"}\n'])
def test_what_is_no_journal_is_neither_compared_nor_replayed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    assert assay("replay", str(tmp_path / "x")).returncode == 2
    for pair in ((str(tmp_path / "x"), str(GOLDEN)), (str(GOLDEN), str(tmp_path / "x"))):
        done = assay("journal", "diff", *pair)
        assert (done.returncode, done.stdout == b"") == ((2, True) if content else (1, False))
        assert done.stderr.startswith(f"assay journal diff: {tmp_path / 'x'}: ".encode() if content else b"")


# ── replay ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_journal_replayed_gives_the_same_verdicts() -> None:
    assert shown("replay", str(GOLDEN)) == ["56 records: 54 the same; not replayable: 2 (secrets were redacted)"]
    assert shown("replay", "-", stdin=GOLDEN.read_bytes()) == [
        "56 records: 54 the same; not replayable: 2 (secrets were redacted)"
    ]


def test_a_verdict_that_is_another_now_is_shown(tmp_path: Path) -> None:
    def before(record: dict[str, Any]) -> None:
        record["status"], record["error"] = "ok", None

    edited = [*LINES[:9], changed(LINES[9], before), *LINES[10:], b'{"ts":"cut']
    done = assay("replay", "-", stdin=b"".join(edited))
    assert done.returncode == 1
    assert done.stdout.decode().splitlines() == [
        "line 10: client tools/call find_books #4",
        "    recorded: ok",
        "    replayed: blocked, contract/input at /params/arguments/limit",
        "57 records: 53 the same, 1 different; not replayable: 1 (not a journal record), 2 (secrets were redacted)",
    ]


def test_without_payloads_there_is_nothing_to_replay(tmp_path: Path) -> None:
    def forget(record: dict[str, Any]) -> None:
        record["metadata"].pop("frame", None)
        record["metadata"].pop("frameBase64", None)

    done = assay("replay", "-", stdin=b"".join(changed(line, forget) for line in LINES))
    assert (done.returncode, done.stdout) == (2, b"")
    assert (
        done.stderr
        == b"assay replay: -: nothing to replay; not replayable: 54 (no payload in the journal); " + PAYLOADS
    )


def journalled(directory: Path, said: list[tuple[Party, Any]], session: str = "", **options: Any) -> Path:
    """A journal with payloads of what is *said* in a conversation with these options."""
    journal = Journal.open(directory, payloads=True, mode=str(options.get("mode", "")))
    assert journal is not None
    conversation = Conversation(**options)
    for party, message in said:
        verdict = conversation.hear(party, frame_of(message))
        transport = "http" if session else "stdio"
        moment = journal.moment(transport, "/mcp", verdict.method, verdict.frame, session=session)
        journal.write(journal.line(verdict, moment, 0))
    journal.close()
    return Path(journal.path)


@rows("mode", ["audit", "enforce"])
def test_a_refused_call_is_replayed_in_the_mode_in_which_it_was_heard(tmp_path: Path, mode: str) -> None:
    """Under audit it went on, and its answer is expected."""
    said = [
        (Party.CLIENT, request(1, "tools/list")),
        (Party.SERVER, result(1, {"tools": [SEARCH]})),
        (Party.CLIENT, call(2, "search", {})),
        *([(Party.SERVER, result(2, HITS))] if mode == "audit" else []),
    ]
    path = journalled(tmp_path / mode, said, "opened before", mode=mode, revision="2025-11-25")
    assert shown("replay", str(path)) == [f"{len(said)} records: {len(said)} the same"]


def test_the_limits_are_those_of_the_settings(tmp_path: Path) -> None:
    path = journalled(tmp_path, [(Party.CLIENT, request(1, "ping")), (Party.CLIENT, b"[" * 20)])
    assert assay("replay", str(path)).returncode == 0
    done = assay("replay", "--set", "limits.frame_bytes=30", str(path))
    assert done.returncode == 1
    assert b"replayed: blocked, framing/size at the message" in done.stdout


def test_the_asset_server_is_replayed_as_such(tmp_path: Path) -> None:
    """Its tools are known before they are listed, and its bare methods are no MCP."""
    from assay.assets.asset_server import AssetServer
    from assay.assets.asset_sources import Catalogue
    from assay.assets.mcp_methods import Methods

    journal = Journal.open(tmp_path, payloads=True, server="assets")
    assert journal is not None
    information = {"name": "a", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": information}
    server = AssetServer(Methods(Catalogue()))
    for message in (
        request(1, "list_schemas", {}),
        request(2, "get_schema", {"name": 5}),
        request(3, "no_such_method"),
        b"{",
        request(4, "initialize", opening),
        call(5, "get_schema", {"name": 5}),
        call(6, "list_schemas", {}),
        b" " * (1 << 20) + b"{}",
    ):
        turn = server.hear(frame_of(message))
        moment = journal.moment("stdio", "stdio", turn.verdict.method, turn.verdict.frame)
        journal.write(journal.line(turn.verdict, moment, 0, code=turn.code))
        for asked in turn.asked:
            answer = server.answer(asked)
            journal.write(journal.line(server.settle(asked, answer), moment, 0, code=answer[1]))
    journal.close()
    [line] = shown("replay", journal.path)
    assert re.fullmatch(r"1[12] records: 1[12] the same.*", line)
