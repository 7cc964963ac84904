"""The commands where something cannot be imported: an extra, or what only POSIX has. Others work on real files."""

import json
import sys
from pathlib import Path

from assay.cli.main import _COMMANDS
from assay.cli.program import NEED_POSIX, refusal
from assay.settings.extras import how_to_install
from kit.command import assay_process
from kit.forks import Ended, Run, run_all
from kit.places import CATALOGUE, ROOT

CONVERSATION = ROOT / "examples" / "conversation.jsonl"
PLAIN = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}\n'
URL = "http://127.0.0.1:1/mcp"

# ── an extra ─────────────────────────────────────────────────────────────────────────────────────────────────────────

NEED_EXTRA = {
    "assay: --target needs ": ("guard", "--target", URL),
    "assay: guarding over HTTP needs ": ("guard", "--listen", "127.0.0.1:0", "--", "true"),
    "assay lock: 127.0.0.1: a server at a URL needs ": ("lock", "--target", URL),
    "assay call: 127.0.0.1: a server at a URL needs ": ("call", URL),
    "assay console needs ": ("console", "--no-browser"),
}


def test_commands_say_what_can_be_installed(tmp_path: Path) -> None:
    for lacking in ("aiohttp", "ssl", "uvicorn"):
        of_console = lacking == "uvicorn"
        commands = {say: words for say, words in NEED_EXTRA.items() if of_console is (words[0] == "console")}
        remedy = "ssl, which this Python does not have" if lacking == "ssl" else f"{lacking}: {how_to_install('http')}"
        runs = [Run(" ".join(words)) for words in commands.values()]
        ended = run_all(tmp_path, runs, f"sys.modules[{lacking!r}] = None", XDG_STATE_HOME=str(tmp_path))
        for say, done in zip(commands, ended, strict=True):
            assert done.status == 2
            assert f"{say.rpartition(': ')[2]}{remedy}\n" in done.err.decode()


# ── POSIX ────────────────────────────────────────────────────────────────────────────────────────────────────────────

REFUSED = (
    ("guard", "--", "server"),
    ("guard", "--help"),
    ("guard", "--target", URL),
    ("guard", "--listen", "127.0.0.1:0", "--", "server"),
    ("call", "--", "server"),
    ("call", URL),
    ("demo",),
    ("demo", "--once"),
    ("lock", "--", "server"),
    ("lock", "--check"),
    ("serve",),
    ("serve", "--http", "127.0.0.1:0"),
)

READING = [
    (("--version",), 0, "assay "),
    (("--help",), 0, "usage: assay"),
    (("check", "--help"), 0, "usage: assay check"),
    (("rules",), 0, "contract/input"),
    (("explain", "contract/input"), 0, "enforce mode"),
    (("explain", "contract/inputs"), 2, "contract/input"),
    (("schemas", "show", "2025-11-25", "Tool"), 0, '"inputSchema"'),
    (("schemas", "diff", "2025-06-18", "2025-11-25"), 0, "159 changes"),
    (("schemas", "export", "there"), 0, "wrote "),
    (("keys", "new", "ada"), 0, "[auth.keys.ada]"),
    (("check", str(CONVERSATION)), 1, "contract/output"),
    (("report", str(CONVERSATION)), 0, "assay-report.html ("),
    (("check", "none.jsonl"), 2, "none.jsonl: No such file"),
    (("validate", "--schemas", str(CATALOGUE / "jsonschema"), str(CATALOGUE / "examples")), 0, '"ok":true'),
    (("validate", "--schemas", str(CATALOGUE / "jsonschema"), str(CONVERSATION)), 2, "expected one JSON value"),
    (("trust", "--list"), 0, ""),
    (("journal", "show", "empty"), 2, "no journals yet"),
    (("journal", "list", "empty"), 0, "no journals yet"),
    (("journal", "list"), 0, ""),
    (("journal", "show"), 2, ""),
    # A journal that a guard has written where there is POSIX.
    (("journal", "list", "runs"), 0, "python"),
    (("journal", "show", "run.jsonl"), 0, "protocol/before-initialize"),
    (("journal", "show", "other.jsonl"), 2, "other.jsonl: not a journal: no record in 1 line"),
    (("journal", "diff", "run.jsonl", "run.jsonl"), 0, ""),
    (("replay", "run.jsonl"), 0, ""),
    (("replay", "other.jsonl"), 2, ""),
    # A client's file.
    (("wrap", "none.json", "--program", "/usr/bin/assay", "--yes"), 2, "assay wrap: none.json: "),
    (
        ("wrap", "mcp.json", "--dry-run"),
        1,
        "assay wrap: assay guard needs Linux or macOS for now: servers behind it do not start on this machine",
    ),
    (("wrap", "mcp.json", "--program", "/usr/bin/assay", "--yes"), 0, "/usr/bin/assay"),
    (("unwrap", "mcp.json"), 0, "uvx"),
    # A file of settings.
    (("trust", "assay.toml", "--yes"), 0, "journal.payloads"),
    (("trust", "--list"), 0, "assay.toml"),
    (("trust", "--remove", "assay.toml"), 0, ""),
    (("trust", "--list"), 0, ""),
]


def without_posix(commands: list[tuple[str, ...]], directory: Path) -> list[Ended]:
    """Run the commands in a process from which `without_posix.py` takes what Windows lacks."""
    python = {
        "PYTHONPATH": str(Path(__file__).parent),
        "PYTHONUTF8": "1",
        # Windows has an encoding of its own for files: whoever reads or writes one has to say that it is UTF-8.
        "PYTHONWARNDEFAULTENCODING": "1",
        "PYTHONWARNINGS": "error::EncodingWarning",
    }
    places = {name: str(directory / name) for name in ("APPDATA", "LOCALAPPDATA")}
    places |= {"COLUMNS": "100", "XDG_STATE_HOME": str(directory)}
    public = "import assay; [getattr(assay, name) for name in assay.__all__]"
    runs = [Run(" ".join(words)) for words in commands]
    done = run_all(directory, runs, f"import without_posix\n{public}", **python, **places)
    assert [each for each in done if b"Traceback" in each.err] == []
    return done


def test_without_posix_commands_that_need_it_say_so_in_one_line_and_all_others_work(tmp_path: Path) -> None:
    said = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}) + "\n"
    options = ("--journal", "runs", "--set", "journal.payloads=true")
    assert assay_process("guard", *options, "--", sys.executable, "-c", "", said=said, cwd=tmp_path).returncode == 3
    (run,) = (tmp_path / "runs").glob("2*.jsonl")
    (tmp_path / "run.jsonl").write_bytes(run.read_bytes())
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.jsonl").write_text("no record\n", encoding="utf-8")
    (tmp_path / "mcp.json").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "assay.toml").write_text("[journal]\npayloads = true\n", encoding="utf-8")
    every = without_posix([*REFUSED, *(words for words, _, _ in READING)], tmp_path)
    refused, ended = every[: len(REFUSED)], every[len(REFUSED) :]
    for words, done in zip(REFUSED, refused, strict=True):
        assert done == (2, b"", f"assay {words[0]} needs Linux or macOS for now\n".encode())
    assert [name for name in NEED_POSIX if refusal(name) is not None] == [], "where there is POSIX"
    for (words, status, shown), done in zip(READING, ended, strict=True):
        assert done.status == status, (words, done)
        assert shown.encode() in done.out + done.err, (words, done)
    assert ended[-1].out == b""
    assert (tmp_path / "mcp.json").read_text(encoding="utf-8") == PLAIN
    assert {each.name for each in _COMMANDS} <= {words[0] for words, _, _ in READING} | NEED_POSIX
