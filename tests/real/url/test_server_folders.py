"""The folder of each guarded server in the state directory: its journals and flights, for its user alone."""

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from assay.base.server_names import folder_of
from assay.cli.main import main
from assay.settings.state_directory import make_folder, server_folder, servers_directory
from kit import journals
from kit.command import assay_process
from kit.guard_process import GUARD, SECONDS, call, frame_of, guarded, liar, notification, request
from kit.http_client import BOTH, initialize
from kit.scripted_http import REVISION, good, guarding, listening, lying

UNSET = {"ASSAY_JOURNAL": ""}
"""For processes that have no journal otherwise."""


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory with the folders, where no journal is named otherwise."""
    monkeypatch.delenv("ASSAY_JOURNAL", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "assay" / "servers"


def records(folder: Path) -> list[dict[str, Any]]:
    """The records of the one run in *folder*."""
    [run] = folder.glob("2*.jsonl")
    return journals.records(run)


def names(folder: Path) -> set[str]:
    """The names that records have for their server."""
    return {each["metadata"]["server"] for each in records(folder)}


def test_a_guard_writes_to_the_folder_of_its_server(tmp_path: Path, servers: Path) -> None:
    with guarded(tmp_path, "--name", "My server!", on={"tools/call:last": [["exit", 1]]}) as one:
        one.open()
        one.say(b"garbage", call(1, "last"))
        one.out.all()
        assert one.ended() == 3
    folder = servers / folder_of("My server!")
    assert names(folder) == {"My server!"}
    [flight] = (folder / "flights").iterdir()
    [run] = folder.glob("2*.jsonl")
    assert {stat.S_IMODE(each.stat().st_mode) for each in (run, flight)} == {0o600}
    above = (tmp_path / "state", servers.parent, servers, folder, folder / "flights")
    assert {stat.S_IMODE(each.stat().st_mode) for each in above} == {0o700}
    assert not (tmp_path / "runs").exists()


def test_a_journal_that_is_named_is_used_as_ever(tmp_path: Path, servers: Path) -> None:
    options = ("--journal", str(tmp_path / "j"), "--set", f"guard.flights={tmp_path / 'f'}")
    with guarded(tmp_path, *options, on={"tools/call:last": [["exit", 1]]}) as one:
        one.open()
        one.say(call(1, "last"))
        assert one.ended() == 3
    assert names(tmp_path / "j") == {"lying_server"}
    assert len(list((tmp_path / "f").iterdir())) == 1
    assert not servers.exists()


@pytest.mark.parametrize("how", ["option", "variable", "setting"])
def test_flights_are_below_the_journal_that_is_named(
    tmp_path: Path, servers: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """All records of a run are in one place, and `assay journal list` finds them there."""
    where = str(tmp_path / "j")
    if how == "variable":
        monkeypatch.setenv("ASSAY_JOURNAL", where)
    options = {"option": ("--journal", where), "setting": ("--set", f"journal.directory={where}")}.get(how, ())
    payloads = ("--set", "journal.payloads=true")
    with guarded(tmp_path, *options, *payloads, on={"tools/call:last": [["exit", 1]]}) as one:
        one.open()
        one.say(call(1, "last"))
        assert one.ended() == 3
    [flight] = (tmp_path / "j" / "flights").iterdir()
    assert not servers.exists()
    listed = assay_process("journal", "list", where, "--format", "json")
    assert [each["file"] for each in json.loads(listed.stdout)["flights"]] == [str(flight)]
    # The journal has the same messages, and each finding counts once.
    rows = assay_process("check", "--format", "ndjson", where).stdout.splitlines()
    rules = [each["rule"] for row in rows for each in json.loads(row)["violations"]]
    assert rules.count("protocol/unanswered") == 1
    assert assay_process("check", str(flight)).returncode == 1


def test_without_a_journal_flights_are_in_the_folder_of_the_server(tmp_path: Path, servers: Path) -> None:
    with guarded(tmp_path, "--journal", "off", on={"tools/call:last": [["exit", 1]]}) as one:
        one.open()
        one.say(call(1, "last"))
        assert one.ended() == 3
    assert len(list((servers / "lying_server" / "flights").iterdir())) == 1


def test_without_a_home_there_is_no_journal_and_the_guard_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ASSAY_JOURNAL", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    with guarded(tmp_path, "--quiet") as one:
        assert one.ask(request(1, "ping"))["id"] == 1
        one.close()
        assert one.ended() == 0
        told = b"there is no state directory: HOME is not set, or not an absolute path"
        assert one.log.rest() == [b"assay: no journal: " + told + b"; give --journal DIR"]


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path, servers: Path) -> None:
    servers.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (servers / "mine").symlink_to(tmp_path / "elsewhere")
    with guarded(tmp_path, "--quiet", "--name", "mine") as one:
        assert one.ask(request(1, "ping"))["id"] == 1
        one.close()
        assert one.ended() == 0
        [line] = one.log.rest()
    assert line.decode() == f"assay: no journal: {servers / 'mine'}: it is a symbolic link; give --journal DIR"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "servers" / "mine"
    folder.mkdir(parents=True)
    os.chown(folder, 12345, -1)
    with pytest.raises(PermissionError, match="it belongs to another user"):
        make_folder(str(folder))


def test_a_folder_is_named_after_its_server() -> None:
    environ = {"XDG_STATE_HOME": "/s"}
    assert servers_directory(environ) == "/s/assay/servers"
    assert server_folder(environ, "../../etc") == f"/s/assay/servers/{folder_of('../../etc')}"
    assert server_folder(environ, "time") == "/s/assay/servers/time"
    assert server_folder({}, "x") is None


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_over_http_the_server_has_a_folder_and_a_name_too(tmp_path: Path, servers: Path) -> None:
    with lying(good) as at_url, guarding(tmp_path, at_url.url, "--name", "there", env=UNSET) as guard:
        assert guard.ask("POST", "/mcp", initialize(REVISION), BOTH).status == 200
        assert names(servers / "there") == {"there"}


def test_a_command_behind_http_has_a_folder_and_a_name_too(tmp_path: Path, servers: Path) -> None:
    with listening(tmp_path, "--name", "here", "--", *liar(), env=UNSET) as guard:
        assert guard.ask("POST", "/mcp", initialize(REVISION), BOTH).status == 200
        assert names(servers / "here") == {"here"}


def test_a_url_for_a_client_on_standard_streams_has_a_folder_and_a_name_too(tmp_path: Path, servers: Path) -> None:
    with lying(good) as at_url:
        said = frame_of(initialize(REVISION)) + b"\n"
        command = [*GUARD, "--target", at_url.url, "--name", "far"]
        done = subprocess.run(command, input=said, cwd=tmp_path, capture_output=True, timeout=SECONDS, check=True)
        assert json.loads(done.stdout)["result"]
    assert names(servers / "far") == {"far"}


def test_every_server_of_a_host_has_a_journal_of_its_own(tmp_path: Path, servers: Path) -> None:
    with lying(good) as one, lying(good) as other:
        file = tmp_path / "mcp.json"
        entries = {"a b": {"url": one.url}, "other": {"url": other.url}, "never asked": {"url": other.url}}
        file.write_text(json.dumps({"mcpServers": entries}))
        with listening(tmp_path, "--config", str(file), "--mode", "enforce", env=UNSET) as guard:
            for path in ("/a%20b/mcp", "/other/mcp"):
                assert guard.ask("POST", path, initialize(REVISION), BOTH).status == 200
    assert sorted(each.name for each in servers.iterdir()) == [folder_of("a b"), "other"]
    assert names(servers / folder_of("a b")) == {"a b"}
    assert names(servers / "other") == {"other"}
    assert {each["metadata"]["mode"] for each in records(servers / "other")} == {"enforce"}


def test_flights_of_a_host_are_in_the_folder_of_their_server(tmp_path: Path, servers: Path) -> None:
    command, *arguments = liar(on={"tools/call": [["exit", 3]]})
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"dies": {"command": command, "args": arguments}}}))
    with listening(tmp_path, "--config", str(file), "--mode", "enforce", env=UNSET) as guard:
        opened = guard.ask("POST", "/dies/mcp", initialize(REVISION), BOTH)
        ident = opened.header("mcp-session-id") or ""
        session = {**BOTH, "mcp-session-id": ident, "mcp-protocol-version": REVISION}
        guard.ask("POST", "/dies/mcp", notification("notifications/initialized"), session)
        assert b'"error"' in guard.ask("POST", "/dies/mcp", call(1), session).body
    assert len(list((servers / "dies" / "flights").iterdir())) == 1


def test_a_host_with_one_journal_names_the_server_of_each_record(tmp_path: Path, servers: Path) -> None:
    with lying(good) as one, lying(good) as other:
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"one": {"url": one.url}, "other": {"url": other.url}}}))
        options = ("--config", str(file), "--mode", "enforce", "--journal", str(tmp_path / "j"))
        with listening(tmp_path, *options) as guard:
            for path in ("/one/mcp", "/other/mcp", "/one/mcp"):
                assert guard.ask("POST", path, initialize(REVISION), BOTH).status == 200
                # A message that is refused is recorded in another way than a good one.
                guard.ask("POST", path, b"garbage", BOTH)
    found = [(each["route"], each["metadata"]["server"]) for each in records(tmp_path / "j")]
    assert set(found) == {("/one/mcp", "one"), ("/other/mcp", "other")}
    assert {each["metadata"]["mode"] for each in records(tmp_path / "j")} == {"enforce"}
    assert not servers.exists()


# ── replaying ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_guarded_server_called_assets_is_not_taken_for_the_asset_server(
    tmp_path: Path, servers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with guarded(tmp_path, "--name", "assets", "--set", "journal.payloads=true") as one:
        one.open()
        one.ask(call(1))
        one.close()
        one.out.all()
        assert one.process.wait(SECONDS) == 0
    assert names(servers / "assets") == {"assets"}
    assert main(["replay", str(servers / "assets")]) == 0
    assert capsys.readouterr().out == "7 records: 7 the same\n"
