"""
The commands where Python has no POSIX: those that need it say so in one line, all others work on real files.

Each command runs in a process of its own, from which `without_posix.py` takes what Windows lacks.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli.main import _COMMANDS
from assay.cli.program import NEED_POSIX, refusal
from kit.places import ROOT

CATALOGUE = ROOT / "examples" / "catalogue"
CONVERSATION = ROOT / "examples" / "conversation.jsonl"

PLAIN = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}\n'


MAIN = "import sys; from assay.cli.main import main; sys.exit(main())"


def environment(home: Path) -> dict[str, str]:
    places = {name: str(home / name) for name in ("APPDATA", "LOCALAPPDATA", "XDG_STATE_HOME")}
    python = {
        "PYTHONPATH": str(Path(__file__).parent),
        "PYTHONUTF8": "1",
        # Windows has an encoding of its own for files: whoever reads or writes one has to say that it is UTF-8.
        "PYTHONWARNDEFAULTENCODING": "1",
        "PYTHONWARNINGS": "error::EncodingWarning",
    }
    return {**os.environ, **places, **python, "COLUMNS": "100"}


def assay(home: Path, *arguments: str, posix: bool = False, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", MAIN if posix else f"import without_posix; {MAIN}", *arguments],
        cwd=home,
        env=environment(home),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the journal of one guarded conversation, which has findings, and a file that is no journal."""
    home = tmp_path_factory.mktemp("journals")
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    arguments = ("guard", "--journal", "runs", "--set", "journal.payloads=true", "--", sys.executable, "-c", "")
    assert assay(home, *arguments, posix=True, stdin=message + "\n").returncode == 3
    (run,) = (home / "runs").glob("2*.jsonl")
    (home / "run.jsonl").write_bytes(run.read_bytes())
    (home / "other.jsonl").write_text("no record\n", encoding="utf-8")
    return home


# ── commands that need POSIX ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments",
    [
        ("guard", "--", "server"),
        ("guard", "--help"),
        ("guard", "--target", "http://127.0.0.1:1/mcp"),
        ("guard", "--listen", "127.0.0.1:0", "--", "server"),
        ("guard", "--listen", "127.0.0.1:0", "--target", "http://127.0.0.1:1/mcp"),
        ("call", "--", "server"),
        ("call", "http://127.0.0.1:1/mcp"),
        ("demo",),
        ("demo", "--once"),
        ("lock", "--", "server"),
        ("lock", "--check"),
        ("serve",),
        ("serve", "--http", "127.0.0.1:0"),
    ],
    ids=" ".join,
)
def test_a_command_that_needs_posix_says_so_in_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = assay(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"assay {arguments[0]} needs Linux or macOS for now\n"
    assert list(tmp_path.iterdir()) == []


def test_no_command_is_refused_where_there_is_posix() -> None:
    assert [name for name in NEED_POSIX if refusal(name) is not None] == []


# ── commands that do not ─────────────────────────────────────────────────────────────────────────────────────────────

READING = [
    (("--version",), 0, "assay "),
    (("--help",), 0, "usage: assay"),
    (("check", "--help"), 0, "usage: assay check"),
    (("rules",), 0, "contract/input"),
    (("explain", "contract/input"), 0, "what to do"),
    (("explain", "contract/inputs"), 2, "contract/input"),
    (("schemas", "show", "2025-11-25", "Tool"), 0, '"inputSchema"'),
    (("schemas", "diff", "2025-06-18", "2025-11-25"), 0, "157 changes"),
    (("schemas", "export", "there"), 0, "wrote "),
    (("keys", "new", "ada"), 0, "[auth.keys.ada]"),
    (("check", str(CONVERSATION)), 1, "contract/output"),
    (("report", str(CONVERSATION)), 0, "assay-report.html ("),
    (("check", "none.jsonl"), 2, "none.jsonl: No such file"),
    (("validate", "--schemas", str(CATALOGUE / "jsonschema"), str(CATALOGUE / "examples")), 0, '"ok":true'),
    (("validate", "--schemas", str(CATALOGUE / "jsonschema"), str(CONVERSATION)), 2, "expected one JSON value"),
    (("trust", "--list"), 0, ""),
    (("journal", "show", "."), 2, "no journals yet"),
    (("journal", "list", "."), 0, "no journals yet"),
    (("journal", "list"), 0, ""),
    (("journal", "show"), 2, ""),
]


@pytest.mark.parametrize(("arguments", "status", "shown"), READING, ids=[" ".join(row[0][:2]) for row in READING])
def test_a_portable_command_reads_and_prints(
    tmp_path: Path, arguments: tuple[str, ...], status: int, shown: str
) -> None:
    done = assay(tmp_path, *arguments)
    assert done.returncode == status, done
    assert shown in done.stdout + done.stderr


def test_journals_are_shown_compared_and_replayed(journals: Path) -> None:
    assert "python" in assay(journals, "journal", "list", "runs").stdout
    shown = assay(journals, "journal", "show", "run.jsonl")
    assert "protocol/before-initialize" in shown.stdout
    assert assay(journals, "journal", "show", "other.jsonl").stdout == (
        assay(journals, "journal", "show", "other.jsonl", posix=True).stdout
    )
    assert assay(journals, "journal", "diff", "run.jsonl", "run.jsonl").returncode == 0
    assert assay(journals, "replay", "run.jsonl").returncode == 0
    assert assay(journals, "replay", "other.jsonl").returncode == 2


def test_a_configuration_is_wrapped_and_unwrapped(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(PLAIN, encoding="utf-8")
    done = assay(tmp_path, "wrap", "mcp.json", "--program", "/usr/bin/assay", "--yes")
    assert done.returncode == 0, done
    assert json.loads(file.read_text(encoding="utf-8"))["mcpServers"]["time"]["command"] == "/usr/bin/assay"
    assert assay(tmp_path, "unwrap", "mcp.json").returncode == 0
    assert file.read_text(encoding="utf-8") == PLAIN
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]


def test_a_configuration_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("[", encoding="utf-8")
    done = assay(tmp_path, "wrap", "mcp.json", "--program", "/usr/bin/assay", "--yes")
    assert done.returncode == 2
    assert done.stderr.startswith("assay wrap: mcp.json: ")


def test_wrapping_for_this_machine_warns_that_the_guard_does_not_run_here(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(PLAIN, encoding="utf-8")
    done = assay(tmp_path, "wrap", "mcp.json", "--dry-run")
    first = done.stderr.splitlines()[0]
    assert (
        first == "assay wrap: assay guard needs Linux or macOS for now: servers behind it do not start on this machine"
    )


def test_a_file_of_settings_is_trusted_and_forgotten(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text("[journal]\npayloads = true\n", encoding="utf-8")
    assert assay(tmp_path, "trust", "assay.toml", "--yes").returncode == 0
    assert "assay.toml" in assay(tmp_path, "trust", "--list").stdout
    assert assay(tmp_path, "trust", "--remove", "assay.toml").returncode == 0
    assert assay(tmp_path, "trust", "--list").stdout == ""


def test_every_public_name_is_there(tmp_path: Path) -> None:
    program = (
        "import without_posix, assay; [getattr(assay, name) for name in assay.__all__]; "
        "print(assay.Conversation().hear(assay.Party.CLIENT, b'{').violations[0].rule)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "syntax/json\n"), done.stderr


def test_every_command_is_tried_here_or_needs_posix() -> None:
    tried = {arguments[0] for arguments, _, _ in READING} | {"replay", "unwrap", "wrap"}
    assert {each.name for each in _COMMANDS} <= tried | NEED_POSIX
