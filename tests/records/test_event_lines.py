"""Lines of a journal that are no records: what begins each file, and what readers of records pass over."""

from pathlib import Path

from assay.records.reading import entries
from assay.records.record import Event, ServerPlace, read_line
from assay.records.run_files import files_of
from kit.records import open_journal

SECRET = "ghp_" + "a1B2" * 9


def test_every_file_of_a_run_begins_with_its_servers(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, server="one", file_bytes=2_000)
    journal.introduce("stdio", "stdio", ServerPlace(("server", f"--token={SECRET}")))
    line = b'{"filler":"' + b"x" * 500 + b'"}\n'
    for _ in range(12):
        journal.write(line)
    journal.close()
    files = files_of(str(journal.path))
    assert len(files) > 3
    for each in files:
        content = Path(each).read_bytes()
        item = read_line(content.split(b"\n")[0])
        assert isinstance(item, Event)
        assert (item.event, item.server) == ("server", "one")
        assert SECRET.encode() not in content
        assert len(content) <= 2_000
    assert sum(Path(each).read_bytes().count(line) for each in files) == 12


def test_a_deterministic_journal_has_no_events(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, server="one", deterministic=True)
    journal.introduce("stdio", "stdio", ServerPlace(("server",)))
    assert journal.event("restart", "stdio", "", {"restarts": 1}) == b""
    journal.close()
    assert Path(journal.path).read_bytes() == b""


def test_readers_of_records_pass_over_events(tmp_path: Path) -> None:
    journal = open_journal(tmp_path, server="one")
    journal.introduce("stdio", "stdio", ServerPlace(("\udcff", "x" * 5_000)))
    journal.write(journal.event("state", "stdio", "", {"state": "failed", "why": f"key {SECRET}", "more": ["x" * 999]}))
    journal.write(b'{"event":"unknown"}\nno JSON\n')
    journal.close()
    content = Path(journal.path).read_bytes()
    assert [each.raw for each in entries(content.splitlines())] == [b'{"event":"unknown"}', b"no JSON"]
    assert SECRET.encode() not in content
    assert max(map(len, content.splitlines())) < 1_500
