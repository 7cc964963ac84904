"""Every sample of the documentation runs, and prints what its page shows."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple

import pytest

from assay.cli.main import main
from kit.command import assay_text, streams, surroundings
from kit.pages import DOCS, PAGES, blocks_of, matches, name_of, samples_of, text_of, without_blank_end
from kit.places import ROOT
from kit.rows import rows

SECONDS = 60
"""What one sample may take. All of them together take a few seconds; a machine under load takes longer."""

OURS = Path(sys.executable).with_name("assay")

Shown = tuple[int, str]
"""A status, and what a terminal shows."""


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """A directory that looks like the root of a new checkout, where a sample may write."""
    return staged(tmp_path)


def staged(directory: Path) -> Path:
    for entry in ROOT.iterdir():
        # What somebody has tried here before is no part of it: a guard leaves its records in `runs`.
        if entry.name not in {"runs", "assay.toml", "assay.lock"}:
            (directory / entry.name).symlink_to(entry)
    return directory


def environment(directory: Path) -> dict[str, str]:
    """Return the variables of a reader. Samples keep a journal, as they do for a reader, in *directory*."""
    unwanted = {"ASSAY_JOURNAL", "COVERAGE_PROCESS_CONFIG", "FORCE_COLOR", "PYTHONPATH", "PYTHONWARNINGS"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    path = os.pathsep.join((str(OURS.parent), os.environ.get("PATH", os.defpath)))
    ours = {"MCP_READY_FILE": str(directory / "mcp.ready"), "XDG_STATE_HOME": str(directory / ".state")}
    return {
        **kept, **ours, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8"
    }  # fmt: skip


def run(command: list[str], directory: Path, said: bytes = b"") -> tuple[int, bytes]:
    """Run *command*; return its status, and both outputs in one, as a terminal shows them."""
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment(directory),
        input=said,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=SECONDS,
    )
    return done.returncode, done.stdout


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PIECE = re.compile(
    r"""'[^']*'|"(?:\\.|[^"])*"|\\.|(?P<operator>[|;&()]+)|\d?>>?(?:&\d)?|<|[^\s'"\\|;<>&()]+|\s+""", re.DOTALL
)
STATUS = '; echo "status $?"'
NEEDS_DESCRIPTORS = {"guard", "serve"}


class Simple(NamedTuple):
    """A pipeline with one command of ours, which can run in this process."""

    before: str
    """What comes before it in a pipeline."""
    variables: dict[str, str]
    words: list[str]
    files: dict[str, str]
    """Files by the operators that name them."""
    after: str


def simple(command: str) -> Simple | None:
    """Return *command* as parts; None where only a shell can run it."""
    parts: list[str] = [""]
    for piece in PIECE.finditer(command):
        if piece["operator"] == "|":
            parts.append("")
        elif piece["operator"]:
            return None
        else:
            parts[-1] += piece[0]
    at = [number for number, part in enumerate(parts) if re.match(r"\s*(\w+=\S+ )*assay ", part)]
    if len(at) != 1 or "$" in parts[at[0]] or "`" in parts[at[0]]:
        return None
    words, files = shlex.split(parts[at[0]].replace("\\\n", " ")), dict[str, str]()
    for operator in ("2>&1", "<", "2>>", "2>", ">>", ">"):
        while operator in words:
            place = words.index(operator)
            files[operator] = words[place + 1] if operator != "2>&1" else ""
            del words[place : place + (2 if operator != "2>&1" else 1)]
    own = words.index("assay")
    if words[own + 1] in NEEDS_DESCRIPTORS:
        return None
    variables = dict(word.split("=", 1) for word in words[:own])
    before, after = "|".join(parts[: at[0]]), "|".join(parts[at[0] + 1 :])
    return Simple(before.replace("\\\n", " ").strip(), variables, words[own + 1 :], files, after)


def run_here(given: Simple, directory: Path) -> Shown:
    """Run a pipeline: our command in this process, what is around it in a shell."""
    shown, said = BytesIO(), b""
    if given.before:
        _, said = run(["bash", "-c", given.before], directory)
    with ExitStack() as open_files:

        def target(*operators: str) -> BinaryIO | None:
            for each in operators:
                if each in given.files:
                    return open_files.enter_context(
                        (directory / given.files[each]).open("ab" if ">>" in each else "wb")
                    )
            return None

        if "<" in given.files:
            said = Path(directory, given.files["<"]).read_bytes()
        piped = BytesIO() if given.after else None
        out = target(">>", ">") or piped or shown
        err = out if "2>&1" in given.files else target("2>>", "2>") or shown
        with surroundings(directory, {**environment(directory), **given.variables}), streams(said, out, err):
            sys.argv = [str(OURS)]
            try:
                status: Any = main(given.words)
            except SystemExit as end:
                status = end.code or 0
            sys.stdout.flush()
            sys.stderr.flush()
    if piped is not None:
        status, after = run(["bash", "-c", given.after], directory, piped.getvalue())
        shown.write(after)
    return status, shown.getvalue().decode()


def shown_by(command: str, directory: Path) -> str:
    """Return what a terminal shows of *command*."""
    given = simple(command.removesuffix(STATUS))
    if given is None:
        return run(["bash", "-c", command], directory)[1].decode()
    status, text = run_here(given, directory)
    return text + (f"status {status}\n" if command.endswith(STATUS) else "")


def starts_guard(page: Path) -> bool:
    return any("assay guard" in sample.command for sample in samples_of(page))


WITH_SAMPLES = [page for page in PAGES if list(samples_of(page))]
WITH_GUARDS = [page for page in WITH_SAMPLES if starts_guard(page)]


@rows("page", [page for page in WITH_SAMPLES if page not in WITH_GUARDS], ids=name_of)
def test_commands_print_what_the_page_shows(page: Path) -> None:
    check_samples(page)


@rows("page", WITH_GUARDS, ids=name_of)
def test_commands_of_pages_with_guards_print_what_the_page_shows(page: Path) -> None:
    check_samples(page)


def check_samples(page: Path) -> None:
    """The state directory of a sample is shown as the one that most readers have."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as made:
        directory = staged(Path(made))
        for sample in samples_of(page):
            shown = shown_by(sample.command, directory).replace(str(directory / ".state"), "~/.local/state")
            actual = without_blank_end([line.rstrip() for line in shown.splitlines()])
            where = f"{name_of(page)}:{sample.start}: {sample.command}"
            assert matches(sample.printed, tuple(actual)), f"{where}\n" + "\n".join(actual)


# ── Python ───────────────────────────────────────────────────────────────────────────────────────────────────────────

EACH = """
import os, runpy, sys, traceback
status = 0
for path in sys.argv[1:]:
    os.chdir(os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        traceback.print_exc()
        status = 1
sys.exit(status)
"""


def programs(directory: Path) -> Iterator[Path]:
    """All blocks of a page make one program, each line where it stands in the page, so that a failure names it."""
    for page in PAGES:
        blocks = blocks_of(page, "python")
        if blocks:
            lines = [""] * len(text_of(page).splitlines())
            for block in blocks:
                lines[block.start - 1 : block.start - 1 + len(block.lines)] = block.lines
            place = directory / page.stem
            place.mkdir()
            program = staged(place) / f"sample_{page.stem}.py"
            program.write_text("\n".join(lines) + "\n", encoding="utf-8")
            yield program


def test_python_samples_run(tmp_path: Path) -> None:
    found = [str(each) for each in programs(tmp_path)]
    assert len(found) > 10
    status, shown = run([sys.executable, "-W", "error", "-c", EACH, *found], tmp_path)
    assert status == 0, shown.decode()


# ── servers of clients ───────────────────────────────────────────────────────────────────────────────────────────────


def configured(page: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the servers that clients are to start on *page*, each with the line of its block."""
    for block in blocks_of(page, "json"):
        given = json.loads("\n".join(block.lines))
        for servers in (given.get("mcpServers"), given.get("servers")):
            yield from ((block.start, server) for server in (servers or {}).values())


def test_servers_of_clients_start_as_the_pages_say(stage: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    check_configurations(stage)
    check_claude_desktop(tmp_path_factory.mktemp("home"))


def check_configurations(stage: Path) -> None:
    """With the placeholders filled in, and our own command: a client's configuration gives a server that answers."""
    found = list(configured(DOCS / "serve.md"))
    assert len(found) == 2
    for line, server in found:
        filled = json.loads(re.sub(r"/path/to/assay|\$\{workspaceFolder\}", str(stage), json.dumps(server)))
        assert Path(filled["command"]).name == "assay", f"line {line}"
        variables = [f"{name}={value}" for name, value in filled.get("env", {}).items()]
        request = (ROOT / "examples" / "session-mcp.jsonl").read_bytes()
        _, shown = run(["env", *variables, str(OURS), *filled["args"]], stage, request)
        log, *answers = shown.decode().splitlines()
        assert log == "mcp:ready mode=stdio", f"line {line}: {shown!r}"
        data = json.loads(answers[-1])["result"]["structuredContent"]["data"]
        assert [example["component"] for example in data["examples"]] == ["tone"]


def check_claude_desktop(home: Path) -> None:
    """The commands of the page put a server behind the guard, show what that finds, and take it out again."""
    env = {**environment(home), "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    path = home / ".config/Claude/claude_desktop_config.json"
    path.parent.mkdir(parents=True)
    before = json.dumps({"mcpServers": {"filesystem": {"command": sys.executable, "args": ["-c", "pass"]}}})
    path.write_text(before, encoding="utf-8")
    lines = blocks_of(DOCS / "wrap.md", "sh")[0].lines
    assert len(lines) == 5
    shown = ""
    for line in lines:
        _, *arguments = shlex.split(line, comments=True)
        done = assay_text(*arguments, *(["--yes"] if arguments[0] == "wrap" else []), cwd=home, env=env)
        assert done.returncode == 0, line
        shown += done.stdout
        if not list(home.rglob("*.jsonl")):
            entry = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["filesystem"]
            subprocess.run([entry["command"], *entry["args"]], input=b"{}\n", env=env, check=False, timeout=SECONDS)
    assert "filesystem" in shown
    assert path.read_text(encoding="utf-8") == before
