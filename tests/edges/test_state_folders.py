"""The folder of a guarded server in the state directory: its name, and whose it may be."""

import os
from pathlib import Path

import pytest

from assay.base.server_names import folder_of
from assay.settings.state_directory import make_folder, server_folder, servers_directory


def test_a_folder_is_named_after_its_server() -> None:
    environ = {"XDG_STATE_HOME": "/s"}
    assert servers_directory(environ) == "/s/assay/servers"
    assert server_folder(environ, "../../etc") == f"/s/assay/servers/{folder_of('../../etc')}"
    assert server_folder(environ, "time") == "/s/assay/servers/time"
    assert server_folder({}, "x") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "servers" / "mine"
    folder.mkdir(parents=True)
    os.chown(folder, 12345, -1)
    with pytest.raises(PermissionError, match="it belongs to another user"):
        make_folder(str(folder))
