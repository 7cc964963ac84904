"""What a guarded server is called, by its URL, and the folder of a name."""

import os
from pathlib import Path

import pytest

from assay.model.names import cut_name, folder_of, name_of_url
from assay.settings.state_directory import make_folder, server_folder
from kit.rows import rows


@rows(
    ("url", "name"),
    [
        ("https://mcp.example.com/s/secret-token/mcp", "mcp.example.com"),
        ("http://user:password@127.0.0.1:8765/mcp?key=secret", "127.0.0.1:8765"),
        ("http://[::1]:99999999/mcp", "server"),
        ("nonsense", "server"),
    ],
)
def test_a_url_gives_its_host_and_no_secret(url: str, name: str) -> None:
    assert name_of_url(url) == name


@rows(
    ("name", "folder"),
    [
        ("time", "time"),
        ("a-b", "a-b"),
        ("mcp.example.com", "mcp.example.com"),
        ("127.0.0.1:8765", "127.0.0.1-8765-8ef0c5f2"),
        ("../../etc", "etc-74ccf3c5"),
        ("..", "server-5ec1f7e7"),
        (".x", "x-bb42e4c6"),
    ],
)
def test_a_name_becomes_a_folder_that_stays_where_it_belongs(name: str, folder: str) -> None:
    assert folder_of(name) == folder


def test_no_two_names_share_a_folder() -> None:
    """Also on a disk that takes capitals for small letters."""
    names = ["a/b", "a b", "a-b", "..", "日本", "server", "", "Files", "files", "FILES", "x" * 64, "x" * 65, "x" * 66]
    assert len({folder_of(name).lower() for name in names}) == len(names)
    assert all(len(folder_of(name)) <= 64 for name in names)
    assert len(cut_name("x" * 1000)) == 64


def test_a_folder_in_the_state_directory_is_named_after_its_server() -> None:
    assert server_folder({"XDG_STATE_HOME": "/s"}, "../../etc") == f"/s/assay/servers/{folder_of('../../etc')}"
    assert server_folder({}, "x") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "servers" / "mine"
    folder.mkdir(parents=True)
    os.chown(folder, 12345, -1)
    with pytest.raises(PermissionError, match="it belongs to another user"):
        make_folder(str(folder))
