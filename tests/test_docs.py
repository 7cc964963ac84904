"""The documentation: every sample runs, every link leads somewhere, nothing that exists goes unmentioned."""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from generated_pages import ELSEWHERE

from assay.base import no_answer
from assay.base.limits import Limits
from assay.cli.main import parser
from assay.engine.fault import SchemaLimits
from assay.rules import RULES
from assay.settings import Settings
from assay.spec.extensions.official import OFFICIAL
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS
from kit.places import ROOT
from kit.rows import rows

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
RUNGS = (
    "framing",
    "syntax",
    "envelope",
    "protocol",
    "extension",
    "tasks",
    "skills",
    "apps",
    "contract",
    "lock",
)

SECONDS = 60
"""What one sample may take. All of them together take a few seconds; a machine under load takes longer."""

ELIDED = "…"
"""Alone on a line of a sample's output, it stands for any lines."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


class Block(NamedTuple):
    """A fenced block: its language, the number of its first line in the page, and its lines."""

    language: str
    start: int
    lines: tuple[str, ...]


class Sample(NamedTuple):
    """A command, and what the page says it prints."""

    start: int
    command: str
    printed: tuple[str, ...]


@cache
def parts(page: Path) -> tuple[tuple[Block, ...], tuple[str, ...]]:
    """The fenced blocks of *page*, and the lines outside of them."""
    blocks: list[Block] = []
    prose: list[str] = []
    held: list[str] = []
    fence, language, start = "", "", 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        opening = re.match(r"\s*(`{3,})\s*(\S*)", line)
        if fence and line.strip() == fence:
            blocks.append(Block(language, start, tuple(held)))
            fence = ""
        elif fence:
            held.append(line)
        elif opening:
            fence, language, start, held = opening[1], opening[2], number + 1, []
        else:
            prose.append(line)
    assert not fence, f"{name_of(page)}:{start}: a fence that is not closed"
    return tuple(blocks), tuple(prose)


def blocks_of(page: Path, language: str) -> list[Block]:
    return [block for block in parts(page)[0] if block.language == language]


def samples_of(block: Block) -> Iterator[Sample]:
    """The commands of a console block: lines after `$`, those that end in a backslash with what follows."""
    waiting = list(enumerate(block.lines, block.start))
    while waiting:
        number, line = waiting.pop(0)
        assert line.startswith("$ "), f"line {number}: output without a command"
        command = line.removeprefix("$ ")
        while command.endswith("\\"):
            command += "\n" + waiting.pop(0)[1]
        printed: list[str] = []
        while waiting and not waiting[0][1].startswith("$ "):
            printed.append(waiting.pop(0)[1].rstrip())
        yield Sample(number, command, tuple(_without_blank_end(printed)))


def _without_blank_end(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


def matches(printed: tuple[str, ...], actual: tuple[str, ...]) -> bool:
    """Whether *actual* is what was printed, `…` standing for any lines."""
    pattern = "".join("(?:.*\n)*?" if line == ELIDED else re.escape(line) + "\n" for line in printed)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in actual)) is not None


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """A directory that looks like the root of a new checkout, where a sample may write."""
    for entry in ROOT.iterdir():
        # What somebody has tried here before is no part of it: a guard leaves its records in `runs`.
        if entry.name not in {"runs", "assay.toml", "assay.lock"}:
            (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


@cache
def environment() -> dict[str, str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    # Samples keep a journal, as they do for a reader.
    # Nothing is measured in them: they reach nothing new, and bash starts them, each with an interpreter of its own.
    unwanted = {"ASSAY_JOURNAL", "COVERAGE_PROCESS_CONFIG", "FORCE_COLOR", "PYTHONPATH", "PYTHONWARNINGS"}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8"}


def run(command: list[str], directory: Path, said: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """*command* with both outputs in one, as a terminal shows them."""
    return subprocess.run(
        command,
        cwd=directory,
        # Without these, servers of several tests would write the same file, and a sample into the user's home.
        env={
            **environment(),
            **variables,
            "MCP_READY_FILE": str(directory / "mcp.ready"),
            "XDG_STATE_HOME": str(directory / ".state"),
        },
        input=said,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=SECONDS,
    )


# ── samples ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@every_page
def test_commands_print_what_the_page_shows(page: Path, stage: Path) -> None:
    """The state directory of a sample is shown as the one that most readers have."""
    for block in blocks_of(page, "console"):
        for sample in samples_of(block):
            done = run(["bash", "-c", sample.command], stage)
            shown = done.stdout.replace(str(stage / ".state"), "~/.local/state")
            actual = _without_blank_end([line.rstrip() for line in shown.splitlines()])
            where = f"{name_of(page)}:{sample.start}: {sample.command}"
            assert matches(sample.printed, tuple(actual)), f"{where}\n" + "\n".join(actual)


@every_page
def test_python_samples_run(page: Path, stage: Path) -> None:
    """All blocks of a page make one program, each line where it stands in the page, so that a failure names it."""
    blocks = blocks_of(page, "python")
    if not blocks:
        return
    lines = [""] * len(page.read_text(encoding="utf-8").splitlines())
    for block in blocks:
        lines[block.start - 1 : block.start - 1 + len(block.lines)] = block.lines
    program = stage / f"sample_{page.stem}.py"
    program.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = run([sys.executable, "-W", "error", str(program)], stage)
    assert done.returncode == 0, f"{name_of(page)}\n{done.stdout}"


def test_json_samples_are_json() -> None:
    for page in PAGES:
        for block in blocks_of(page, "json"):
            try:
                json.loads("\n".join(block.lines))
            except ValueError as error:
                pytest.fail(f"{name_of(page)}:{block.start}: {error}")


def configured(page: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The servers that clients are told to start on *page*, each with the line of its block."""
    for block in blocks_of(page, "json"):
        told = json.loads("\n".join(block.lines))
        for servers in (told.get("mcpServers"), told.get("servers")):
            yield from ((block.start, server) for server in (servers or {}).values())


def test_servers_of_clients_start_as_the_page_says(stage: Path) -> None:
    """With the placeholders filled in, and our own command: a client's configuration gives a server that answers."""
    found = list(configured(DOCS / "serve.md"))
    assert len(found) == 3
    for line, server in found:
        filled = json.loads(re.sub(r"/path/to/assay|\$\{workspaceFolder\}", str(stage), json.dumps(server)))
        assert Path(filled["command"]).name == "assay", f"line {line}"
        variables = [f"{name}={value}" for name, value in filled.get("env", {}).items()]
        ours = str(Path(sys.executable).with_name("assay"))
        request = (ROOT / "examples" / "session-mcp.jsonl").read_text(encoding="utf-8")
        done = run(["env", *variables, ours, *filled["args"]], stage, request)
        log, *answers = done.stdout.splitlines()
        assert log == "mcp:ready mode=stdio", f"line {line}: {done.stdout}"
        data = json.loads(answers[-1])["result"]["structuredContent"]["data"]
        assert [example["component"] for example in data["examples"]] == ["tone"]


@rows(
    ("printed", "actual", "same"),
    [
        (("a", "b"), ("a", "b"), True),
        (("a", "…"), ("a", "b", "c"), True),
        (("a", "…", "c"), ("a", "c"), True),
        (("…", "b"), ("a", "b", "c"), False),
        (("a.",), ("ab",), False),
        ((), ("a",), False),
    ],
)
def test_an_ellipsis_stands_for_lines_and_nothing_else_does(
    printed: tuple[str, ...], actual: tuple[str, ...], same: bool
) -> None:
    assert matches(printed, actual) is same


# ── links ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def anchors(page: Path) -> set[str]:
    """What the headings of *page* can be linked by, as GitHub makes it."""
    found: set[str] = set()
    for line in parts(page)[1]:
        heading = re.match(r"#{1,6}\s+(.*)", line)
        if heading:
            plain = re.sub(r"[^\w\- ]", "", heading[1].strip().lower()).replace(" ", "-")
            number = next(n for n in range(len(found) + 1) if (f"{plain}-{n}" if n else plain) not in found)
            found.add(f"{plain}-{number}" if number else plain)
    return found


def links(page: Path) -> Iterator[str]:
    """Where *page* points to within the project."""
    for line in parts(page)[1]:
        for target in re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", re.sub(r"`[^`]*`", "", line)):
            if not re.match(r"[a-z][a-z0-9+.-]*:", target):
                yield target


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in links(page):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), f"{name_of(page)}: nothing at {target}"
            assert not anchor or anchor in anchors(there), f"{name_of(page)}: no heading for {target}"


def test_no_page_has_a_section_twice() -> None:
    for page in PAGES:
        sections = [line for line in parts(page)[1] if line.startswith("## ")]
        assert sorted(sections) == sorted(set(sections)), name_of(page)


def test_the_index_has_every_page() -> None:
    listed = {(DOCS / target.partition("#")[0]).resolve() for target in links(DOCS / "README.md")}
    missing = {page.name for page in DOCS.glob("*.md") if page.name != "README.md" and page not in listed}
    assert not missing


def test_the_readme_is_short_and_in_the_order_of_what_readers_do() -> None:
    """The asset server is not what most readers want, so it comes after the guard, and after every task."""
    readme = ROOT / "README.md"
    headings = [line.removeprefix("## ") for line in parts(readme)[1] if line.startswith("## ")]
    assert headings == [
        "Two commands",
        "Wrap my client",
        "My server in CI",
        "Why did my tool vanish?",
        "Guard a team's servers over HTTP",
        "Judge messages in my program",
        "Install",
        "The asset server",
        "More",
    ]
    text = readme.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 160
    before, _, _ = text.partition("## The asset server")
    assert not re.search(r"assay serve|python -m mcp|\btiers?\b", before)


# ── completeness ─────────────────────────────────────────────────────────────────────────────────────────────────────


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


METHODS = {name for revision in REVISIONS for name in (*methods(revision), *OFFICIAL.methods(revision))}


def page_of(rung: str) -> str:
    """The page that has the rules of *rung*."""
    return f"{ELSEWHERE.get(rung, rung)}.md"


def test_every_rule_is_on_the_page_of_rules_and_on_that_of_its_rung() -> None:
    for rule in RULES:
        assert f"### {rule}\n" in text("rules.md")
        assert f"[{rule}](rules.md#{rule.replace('/', '')})" in text(page_of(RULES[rule].rung)), rule


def test_the_page_of_a_rung_has_no_rule_that_does_not_exist() -> None:
    for rung in RUNGS:
        named = set(re.findall(rf"(?<![\w/]){rung}/[a-z][a-z0-9-]*", text(page_of(rung))))
        assert named - METHODS <= set(RULES), rung


def commands(of: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """*of*, and every command below it."""
    yield of
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from commands(below)


def options() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every option: the command it belongs to, its longest spelling, and the words it takes beside the default."""
    for command in commands(parser()):
        for action in command._actions:
            if action.option_strings:
                yield command.prog, max(action.option_strings, key=len), _choices(action)


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(word for word in action.choices or () if word != action.default)


@cache
def pages_with(word: str) -> set[str]:
    """Return the pages that have *word*, or several words, as a whole."""
    found = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    return {page.name for page in DOCS.glob("*.md") if found.search(page.read_text(encoding="utf-8"))}


def test_every_command_is_documented() -> None:
    assert [each.prog for each in commands(parser()) if not pages_with(each.prog)] == []


def test_every_option_is_documented_on_a_page_of_its_command() -> None:
    """`--help` is said once for all commands."""
    for command, option, words in options():
        pages = pages_with("assay" if option == "--help" else command) & pages_with(option)
        assert any(all(page in pages_with(word) for word in words) for page in pages), f"{command} {option} {words}"


@pytest.mark.parametrize("limits", [Limits, SchemaLimits])
def test_every_limit_is_documented_with_its_default(limits: type[Limits] | type[SchemaLimits]) -> None:
    page = text("limits.md")
    for field in fields(limits):
        assert f"| `{field.name}` | {field.default:,} |" in page


SETTING = re.compile(r"^\| `(\w+)\.(\w+)` \| ([\d,.]+) \|", re.MULTILINE)


def test_limits_on_the_page_of_security_are_those_in_force() -> None:
    settings = Settings()
    rows = SETTING.findall(text("security.md"))
    assert len(rows) > 20
    for section, name, default in rows:
        assert default == f"{getattr(getattr(settings, section), name):,}", f"{section}.{name}"


# ── places and texts in the source ───────────────────────────────────────────────────────────────────────────────────

MAPS = [ROOT / "CONTRIBUTING.md", *(DOCS / name for name in ("architecture.md", "glossary.md", "dependencies.md"))]
"""Pages that name files of the project."""


@rows("page", [page for page in MAPS if page.exists()], ids=name_of)
def test_named_files_exist(page: Path) -> None:
    named = re.findall(r"`((?:src|tests|docs|bench|examples|compat)/[\w./-]+)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


@cache
def shown_texts() -> str:
    """Return every string of the source, one a line, with an ellipsis for each value in it, and composed messages."""
    late, crashed = no_answer.within(1), "it exited with status 1"
    composed = (no_answer.error("TIMEOUT", late), no_answer.error("UPSTREAM_FAILURE", crashed))
    lines = [str(error["message"]) for error in composed]
    for path in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                lines.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                lines.append(node.value)
    return "\n".join(lines)


def quoted_errors() -> list[str]:
    """Return the first column of every table of the page about troubleshooting."""
    return re.findall(r"^\| `([^`]+)` \|", text("troubleshooting.md"), re.MULTILINE)


def test_every_error_on_the_page_exists_in_the_source() -> None:
    """What stands before and after an ellipsis may come from different strings."""
    assert len(quoted_errors()) > 50
    for error in quoted_errors():
        parts = [part.strip() for part in error.split("…")]
        assert [part for part in parts if part.strip(":; ") and part not in shown_texts()] == [], error
