"""What is said where an optional dependency is missing: a command that works."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.settings.extras import how_to_install, missing
from kit.rows import rows

METADATA = """\
Metadata-Version: 2.4
Name: mcp-assay
Version: 0.1.0
Requires-Dist: orjson>=3.10
Provides-Extra: http
Requires-Dist: aiohttp>=3.11; extra == 'http'
Requires-Dist: uvloop>=0.20; (sys_platform != 'win32') and extra == 'http'
Provides-Extra: auth
Requires-Dist: pyjwt[crypto]>=2.8; extra == 'auth'
"""


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment, first on the path of modules, that has this distribution from a package index."""
    made = tmp_path / "environment"
    information = made / "mcp_assay-0.1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(METADATA, encoding="utf-8")
    (information / "INSTALLER").write_text("pip\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(made))
    monkeypatch.setattr(sys, "prefix", str(made))
    return made


# ── what to install ──────────────────────────────────────────────────────────────────────────────────────────────────


GIT = {"vcs": "git", "commit_id": "c0ffee"}


@rows(
    ("origin", "wanted"),
    [
        (None, "'mcp-assay[http]'"),
        ("", "'mcp-assay[http]'"),
        ("{", "'mcp-assay[http]'"),
        ("[]", "'mcp-assay[http]'"),
        ({"url": "file://HERE/a%20checkout", "dir_info": {"editable": False}}, "'HERE/a checkout[http]'"),
        ({"url": "file://HERE/a%20checkout", "dir_info": {"editable": True}}, "-e 'HERE/a checkout[http]'"),
        ({"url": "file://HERE/assay.whl", "archive_info": {}}, "'HERE/assay.whl[http]'"),
        # An image or a package is built from a wheel that its users never see.
        ({"url": "file://HERE/gone.whl", "archive_info": {}}, "'aiohttp>=3.11' 'uvloop>=0.20'"),
        ({"url": "https://a.example/a.whl", "archive_info": {}}, "'mcp-assay[http] @ https://a.example/a.whl'"),
        ({"url": "https://a.example/a", "vcs_info": GIT}, "'mcp-assay[http] @ git+https://a.example/a@c0ffee'"),
        (
            {
                "url": "ssh://git@a.example/all",
                "vcs_info": {**GIT, "requested_revision": "v1"},
                "subdirectory": "assay",
            },
            "'mcp-assay[http] @ git+ssh://git@a.example/all@v1#subdirectory=assay'",
        ),
    ],
)
def test_the_extra_is_installed_from_where_we_came(there: Path, tmp_path: Path, origin: Any, wanted: str) -> None:
    (tmp_path / "a checkout").mkdir(exist_ok=True)
    (tmp_path / "assay.whl").touch()
    if origin is not None:
        text = origin if isinstance(origin, str) else json.dumps(origin)
        direct = there / "mcp_assay-0.1.0.dist-info" / "direct_url.json"
        direct.write_text(text.replace("HERE", str(tmp_path)), encoding="utf-8")
    assert how_to_install("http") == f"pip install {wanted}".replace("HERE", str(tmp_path))


@rows(
    ("name", "command"),
    [("uv-receipt.toml", "uv tool install --force"), ("pipx_metadata.json", "pipx install --force")],
)
def test_a_tool_that_keeps_an_environment_for_each_program_is_named(there: Path, name: str, command: str) -> None:
    (there / name).touch()
    assert how_to_install("http") == f"{command} 'mcp-assay[http]'"
    (there / name).unlink()


def test_uv_is_named_where_it_installed_us(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (there / "mcp_assay-0.1.0.dist-info" / "INSTALLER").write_text("uv\n", encoding="utf-8")
    assert how_to_install("http") == "uv pip install 'mcp-assay[http]'"
    monkeypatch.setattr(sys, "prefix", "/home/ada/.cache/uv/archive-v0/h3a45")
    assert how_to_install("http") == "uvx --from 'mcp-assay[http]' assay"


# ── what is missing ──────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("error", "said"),
    [
        (ModuleNotFoundError(name="aiohttp"), "aiohttp: pip install 'mcp-assay[http]'"),
        (ModuleNotFoundError(name="fcntl"), "fcntl, which this Python does not have"),
        (ModuleNotFoundError(name="_ssl"), "_ssl, which this Python does not have"),
        (
            ImportError("libz: cannot open", name="httptools.parser"),
            "httptools.parser, which cannot be imported: libz: cannot open",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_helps(there: Path, error: ImportError, said: str) -> None:
    assert missing(error, "http") == said


@rows("error", [ModuleNotFoundError(name="assay.gone"), ImportError("no name")])
def test_a_mistake_of_ours_is_not_taken_for_a_missing_extra(error: ImportError) -> None:
    with pytest.raises(ImportError) as caught:
        missing(error, "http")
    assert caught.value is error


def test_no_other_module_writes_a_hint_of_its_own() -> None:
    sources = Path(assay.__file__).parent.rglob("*.py")
    assert [each.name for each in sources if "pip install" in each.read_text(encoding="utf-8")] == ["extras.py"]
