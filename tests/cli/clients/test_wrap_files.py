"""Files that belong to somebody else: read with care, replaced whole or not at all. And where clients have them."""

import os
from pathlib import Path

import pytest

from assay.cli.clients.config_files import LONGEST, backup_of, exchange, find, places
from assay.cli.clients.parsing import ConfigError
from kit.rows import rows


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text("old")
    path.chmod(0o640)
    return path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_has_changed_since_is_not_written_over(config: Path) -> None:
    found = find(str(config))
    config.write_text("by somebody else")
    with pytest.raises(ConfigError, match="changed in the meantime"):
        exchange(found, "new", backup="kept")
    assert config.read_text() == "by somebody else"
    assert names(config.parent) == ["mcp.json"]


def test_a_file_that_is_read_only_stays(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write everywhere: so this says that it may not.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ConfigError, match="read-only"):
        exchange(find(str(config)), "new")


@rows("failing", ["fsync", "replace", "fchmod"])
def test_what_fails_half_way_leaves_the_file_as_it_was(
    config: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """A disk may say only at the end that it is full."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, failing, full)
        with pytest.raises(ConfigError, match="No space left on device"):
            exchange(find(str(config)), "new", backup="kept")
    assert config.read_text() == "old"
    assert names(config.parent) == ["mcp.json"]


@rows("is_kept", [True, False])
def test_the_backup_is_there_before_the_file_is_touched(
    config: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """An earlier one is kept; one that was made for nothing goes."""
    earlier = config.with_name("mcp.json.assay-backup")
    earlier.unlink(missing_ok=True)
    if is_kept:
        earlier.write_text("earlier")
    replaced: list[str] = []
    really = os.replace

    def counted(source: str, target: Path) -> None:
        replaced.append(target.name)
        if len(replaced) == 2:
            raise OSError(5, "Input/output error")
        really(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", counted)
        with pytest.raises(ConfigError, match=r"cannot write mcp\.json: Input/output error"):
            exchange(find(str(config)), "new", backup="kept")
    assert replaced == ["mcp.json.assay-backup", "mcp.json"]
    assert config.read_text() == "old"
    assert names(config.parent) == (["mcp.json", earlier.name] if is_kept else ["mcp.json"])
    assert not is_kept or earlier.read_text() == "kept"


def test_what_is_no_file_is_shown(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b" " * (LONGEST + 1))
    for name, why in {
        "none": "No such file",
        ".": "not a file",
        "pipe": "not a file",
        "long": "longer than",
        "loop": "link",
    }.items():
        with pytest.raises(ConfigError, match=why):
            find(str(tmp_path / name))


def test_a_backup_that_cannot_be_read_is_none(config: Path) -> None:
    config.with_name("mcp.json.assay-backup").write_bytes(b"\xff")
    assert backup_of(find(str(config))) is None


# ── places ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("client", "platform", "environment", "expected"),
    [
        ("claude-desktop", "linux", {}, ["/h/.config/Claude/claude_desktop_config.json"]),
        ("claude-desktop", "linux", {"XDG_CONFIG_HOME": "/c"}, ["/c/Claude/claude_desktop_config.json"]),
        ("claude-desktop", "darwin", {}, ["/h/Library/Application Support/Claude/claude_desktop_config.json"]),
        (
            "claude-desktop",
            "win32",
            {"APPDATA": "/r", "LOCALAPPDATA": "/l"},
            [
                "/r/Claude/claude_desktop_config.json",
                "/l/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            ],
        ),
        ("cursor", "win32", {}, [".cursor/mcp.json", "/h/.cursor/mcp.json"]),
        ("vscode", "linux", {}, [".vscode/mcp.json", "/h/.config/Code/User/mcp.json"]),
        ("vscode", "darwin", {}, [".vscode/mcp.json", "/h/Library/Application Support/Code/User/mcp.json"]),
        ("vscode", "win32", {}, [".vscode/mcp.json", "/h/AppData/Roaming/Code/User/mcp.json"]),
        ("claude-code", "linux", {}, [".mcp.json", "/h/.claude.json"]),
        ("claude-code", "darwin", {"CLAUDE_CONFIG_DIR": "/c"}, [".mcp.json", "/c/.claude.json"]),
        ("windsurf", "darwin", {}, ["/h/.codeium/windsurf/mcp_config.json"]),
        ("gemini", "linux", {}, [".gemini/settings.json", "/h/.gemini/settings.json"]),
        ("gemini", "linux", {"GEMINI_CLI_HOME": "/g"}, [".gemini/settings.json", "/g/.gemini/settings.json"]),
        ("zed", "linux", {}, [".zed/settings.json", "/h/.config/zed/settings.json"]),
        ("zed", "linux", {"XDG_CONFIG_HOME": "relative"}, [".zed/settings.json", "/h/.config/zed/settings.json"]),
        ("zed", "linux", {"FLATPAK_XDG_CONFIG_HOME": "/f"}, [".zed/settings.json", "/f/zed/settings.json"]),
        ("zed", "darwin", {"XDG_CONFIG_HOME": "/c"}, [".zed/settings.json", "/h/.config/zed/settings.json"]),
        ("zed", "win32", {"APPDATA": "/r"}, [".zed/settings.json", "/r/Zed/settings.json"]),
        ("codex", "linux", {}, [".codex/config.toml", "/h/.codex/config.toml"]),
        ("codex", "win32", {"CODEX_HOME": "/x"}, [".codex/config.toml", "/x/config.toml"]),
    ],
)
def test_where_clients_have_their_files(
    client: str, platform: str, environment: dict[str, str], expected: list[str]
) -> None:
    assert places(client, platform, environment, "/h") == expected
