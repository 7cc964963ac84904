"""The module name `mcp` of specs/001, in an environment made as specs/001 §11 says; and the official SDK beside us."""

import base64
import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import Distribution, PackagePath
from pathlib import Path

import pytest

from kit.places import ROOT

CATALOGUE = ROOT / "examples" / "catalogue"
BUNDLED = {
    "SYN_SCHEMAS_DIR": str(CATALOGUE / "jsonschema"),
    "SYN_EXAMPLES_DIR": str(CATALOGUE / "examples"),
}

SECONDS = 60
"""What a command may take; each takes a fraction of a second."""


def environment(name: str) -> Path:
    """One of the environments that `make test` makes."""
    path = ROOT / ".venvs" / name
    if not (path / ".done").exists():
        pytest.skip(f"no environment {path.relative_to(ROOT)}: `make test` makes it")
    return path


@pytest.fixture(scope="module")
def specs() -> Path:
    """What `pip install -r requirements.txt && pip install -e .` made."""
    return environment("specs")


@pytest.fixture(scope="module")
def sdk() -> Path:
    """The official SDK, and both of our distributions, installed after it."""
    return environment("sdk")


def run(*command: str | Path, cwd: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONWARNINGS")}
    return subprocess.run(
        [str(part) for part in command],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
        cwd=cwd,
        env={**kept, **BUNDLED, **variables},
    )


# ── the module of specs/001 ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_module_has_the_version_that_was_specified_and_explains_its_arguments(specs: Path, tmp_path: Path) -> None:
    """specs/001 §11, to the letter."""
    python = specs / "bin" / "python"
    done = run(python, "-c", "import mcp; print(mcp.__version__)", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.2.3\n", "")
    for argument, status, said in (
        ("--version", 0, "mcp 0.2.3"),
        ("--help", 0, "usage: python -m mcp"),
        ("--validate", 2, "usage: python -m mcp"),
        ("--nope", 2, "usage: python -m mcp"),
    ):
        done = run(python, "-m", "mcp", argument, cwd=tmp_path)
        assert done.returncode == status
        assert (done.stderr if status else done.stdout).startswith(said)
    # requirements.txt may be all that somebody installs. `-S`: nothing that is installed is on the path.
    for arguments in ((), ("--validate", "asset.json")):
        command = (sys.executable, "-S", "-m", "mcp", *arguments)
        done = run(*command, cwd=tmp_path, PYTHONPATH=str(ROOT / "compat" / "src"))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "mcp: Assay is not installed here: run `pip install -e .` in its checkout\n"


def test_the_module_serves_until_its_input_ends_and_validates_files(specs: Path, tmp_path: Path) -> None:
    """specs/001 §3 and §10: 0 success, 1 validation failed, 2 IO or parse error; the result is JSON in every case."""
    line = '{"jsonrpc":"2.0","id":1,"method":"list_schemas","params":{}}\n'
    ready = tmp_path / "ready"
    done = run(specs / "bin" / "python", "-m", "mcp", cwd=tmp_path, stdin=line, MCP_READY_FILE=str(ready))
    assert (done.returncode, done.stderr) == (0, "mcp:ready mode=stdio\n")
    assert done.stdout.startswith('{"jsonrpc":"2.0","id":1,"result":{"ok":true,"schemas":[{"name":"control",')
    assert done.stdout.count("\n") == 1
    assert not ready.exists()

    path = tmp_path / "tone.json"
    for content, status in (
        ((CATALOGUE / "examples" / "tone.hum.json").read_text(), 0),
        ('{"frequency":"110 Hz"}', 1),
        ("{", 2),
        (None, 2),
    ):
        if content is None:
            path.unlink()
        else:
            path.write_text(content)
        done = run(specs / "bin" / "python", "-m", "mcp", "--validate", path, cwd=tmp_path)
        assert done.returncode == status, done.stderr
        assert json.loads(done.stdout)["ok"] is (status == 0)
        assert "Traceback" not in done.stderr


# ── beside the official SDK ──────────────────────────────────────────────────────────────────────────────────────────


def files(venv: Path, name: str) -> list[PackagePath]:
    """What the distribution *name* has recorded as its own."""
    [place] = venv.glob("lib/python*/site-packages")
    [found] = Distribution.discover(name=name, path=[str(place)])
    return found.files or []


def test_where_the_official_sdk_is_it_is_as_it_was_installed_and_assay_works(sdk: Path, tmp_path: Path) -> None:
    """It has the module name `mcp`, too, and was there before us."""
    recorded = [file for file in files(sdk, "mcp") if file.hash is not None]
    assert sum(file.parts[0] == "mcp" for file in recorded) > 50
    for file in recorded:
        assert file.hash is not None
        digest = hashlib.new(file.hash.mode, Path(str(file.locate())).read_bytes()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value, file
    for name in ("mcp-assay", "assay-mcp-compat"):
        ours = files(sdk, name)
        assert ours
        assert not [file for file in ours if file.parts[0] == "mcp"]
        assert not {str(file) for file in ours} & {str(file) for file in files(sdk, "mcp")}
    [place] = sdk.glob("lib/python*/site-packages")
    asked = "import assay, mcp; mcp.ClientSession; print(mcp.__file__)"
    done = run(sdk / "bin" / "python", "-c", asked, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (f"{place / 'mcp' / '__init__.py'}\n", "")
    assert run(sdk / "bin" / "assay", "--version", cwd=tmp_path).stdout.startswith("assay ")
