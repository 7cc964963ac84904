"""The folder of each guarded server in the state directory: its journals and flights, for its user alone."""

import stat
from pathlib import Path

import pytest

from assay.model.names import folder_of
from kit import journals
from kit.guard_process import call, guarded, request
from kit.rows import rows


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory with the folders, where no journal is named otherwise."""
    monkeypatch.delenv("ASSAY_JOURNAL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "assay" / "servers"


def names(folder: Path) -> set[str]:
    """The names that the records of the one run in *folder* have for their server."""
    [run] = folder.glob("2*.jsonl")
    return {each["metadata"]["server"] for each in journals.records(run)}


def lost(directory: Path, *options: str) -> None:
    """A guard whose server exits amid a call."""
    with guarded(directory, *options, on={"tools/call:last": [["exit", 1]]}) as one:
        one.open()
        one.say(b"garbage", call(1, "last"))
        one.out.all()
        assert one.ended() == 3


def test_a_guard_writes_to_the_folder_of_its_server(tmp_path: Path, servers: Path) -> None:
    lost(tmp_path, "--name", "My server!")
    folder = servers / folder_of("My server!")
    assert names(folder) == {"My server!"}
    [flight] = (folder / "flights").iterdir()
    [run] = folder.glob("2*.jsonl")
    assert {stat.S_IMODE(each.stat().st_mode) for each in (run, flight)} == {0o600}
    above = (tmp_path / "state", servers.parent, servers, folder, folder / "flights")
    assert {stat.S_IMODE(each.stat().st_mode) for each in above} == {0o700}
    lost(tmp_path, "--journal", "off")
    assert len(list((servers / "scripted_server" / "flights").iterdir())) == 1


@rows("why", ["there is no home", "a link is in the place of the folder"])
def test_where_no_folder_can_be_made_the_guard_goes_on_without_a_journal(
    tmp_path: Path, servers: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    expected = "there is no state directory: HOME is not set, or not an absolute path"
    if why == "there is no home":
        for name in ("XDG_STATE_HOME", "HOME"):
            monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        servers.mkdir(parents=True)
        (tmp_path / "another").mkdir()
        (servers / "mine").symlink_to(tmp_path / "another")
        expected = f"{servers / 'mine'}: it is a symbolic link"
    with guarded(tmp_path, "--quiet", "--name", "mine") as one:
        assert one.ask(request(1, "ping"))["id"] == 1
        one.close()
        assert one.ended() == 0
        assert one.log.rest() == [f"assay: no journal: {expected}; give --journal DIR".encode()]
    assert not (tmp_path / "another").exists() or list((tmp_path / "another").iterdir()) == []
