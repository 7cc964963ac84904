"""What is said where an optional dependency is missing: a command that works."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.base.extras import how_to_install, missing
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


def come_from(there: Path, **origin: Any) -> None:
    text = json.dumps(origin)
    (there / "mcp_assay-0.1.0.dist-info" / "direct_url.json").write_text(text, encoding="utf-8")


# ── what to install ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_package_index_had_is_installed_by_its_name(there: Path) -> None:
    assert how_to_install("http") == "pip install 'mcp-assay[http]'"


@rows(("editable", "option"), [(False, ""), (True, "-e ")])
def test_a_checkout_is_installed_by_its_path(there: Path, tmp_path: Path, editable: bool, option: str) -> None:
    checkout = tmp_path / "a checkout"
    checkout.mkdir(exist_ok=True)
    come_from(there, url=checkout.as_uri(), dir_info={"editable": editable})
    assert how_to_install("http") == f"pip install {option}'{checkout}[http]'"


def test_a_wheel_is_installed_by_its_path(there: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "mcp_assay-0.1.0-py3-none-any.whl"
    wheel.touch()
    come_from(there, url=wheel.as_uri(), archive_info={})
    assert how_to_install("auth") == f"pip install '{wheel}[auth]'"


def test_where_the_wheel_is_gone_the_packages_are_named(there: Path, tmp_path: Path) -> None:
    """An image or a package is built from a wheel that its users never see."""
    come_from(there, url=(tmp_path / "gone.whl").as_uri(), archive_info={})
    assert how_to_install("http") == "pip install 'aiohttp>=3.11' 'uvloop>=0.20'"
    assert how_to_install("auth") == "pip install 'pyjwt[crypto]>=2.8'"


@rows(
    ("origin", "url"),
    [
        ({"url": "https://host.example/assay.whl", "archive_info": {}}, "https://host.example/assay.whl"),
        (
            {"url": "https://host.example/assay", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "git+https://host.example/assay@c0ffee",
        ),
        (
            {
                "url": "ssh://git@host.example/all",
                "vcs_info": {"vcs": "git", "commit_id": "c0ffee", "requested_revision": "v1"},
                "subdirectory": "assay",
            },
            "git+ssh://git@host.example/all@v1#subdirectory=assay",
        ),
    ],
    ids=["archive", "commit", "tag-and-subdirectory"],
)
def test_what_came_from_a_url_is_installed_from_it(there: Path, origin: dict[str, Any], url: str) -> None:
    come_from(there, **origin)
    assert how_to_install("http") == f"pip install 'mcp-assay[http] @ {url}'"


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


@rows("content", ["", "{", "[]"])
def test_an_origin_that_cannot_be_read_counts_as_none(there: Path, content: str) -> None:
    (there / "mcp_assay-0.1.0.dist-info" / "direct_url.json").write_text(content, encoding="utf-8")
    assert how_to_install("http") == "pip install 'mcp-assay[http]'"


# ── what is missing ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_module_of_the_extra_is_named_with_the_command(there: Path) -> None:
    error = ModuleNotFoundError("No module named 'aiohttp'", name="aiohttp")
    assert missing(error, "http") == "aiohttp: pip install 'mcp-assay[http]'"


@rows("name", ["fcntl", "_ssl"])
def test_a_module_of_python_itself_cannot_be_installed(name: str) -> None:
    assert missing(ModuleNotFoundError(name=name), "http") == f"{name}, which this Python does not have"


def test_a_module_that_is_there_and_does_not_load_is_shown_with_the_reason() -> None:
    error = ImportError("libz.so.1: cannot open shared object file", name="httptools.parser")
    assert missing(error, "http") == (
        "httptools.parser, which cannot be imported: libz.so.1: cannot open shared object file"
    )


@rows("error", [ModuleNotFoundError(name="assay.gone"), ImportError("no name")])
def test_a_mistake_of_ours_is_not_taken_for_a_missing_extra(error: ImportError) -> None:
    with pytest.raises(ImportError) as caught:
        missing(error, "http")
    assert caught.value is error


def test_no_other_module_writes_a_hint_of_its_own() -> None:
    sources = Path(assay.__file__).parent.rglob("*.py")
    assert [each.name for each in sources if "pip install" in each.read_text(encoding="utf-8")] == ["extras.py"]
