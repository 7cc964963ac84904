"""The pages of the documentation: every link leads somewhere, nothing that exists goes unmentioned."""

import argparse
import ast
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
from generated_pages import ELSEWHERE

from assay.cli.main import parser
from assay.model.errors import no_answer, within
from assay.model.limits import Limits
from assay.rules import RULES
from assay.schema.fault import SchemaLimits
from assay.settings import Settings
from assay.spec.extensions import extended_methods
from assay.spec.methods import methods
from assay.spec.revisions import REVISIONS
from kit.pages import DOCS, PAGES, blocks_of, matches, name_of, parts, text_of
from kit.places import ROOT
from kit.rows import rows

RUNGS = sorted({rule.rung for rule in RULES.values()})

# ── samples ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_json_samples_are_json() -> None:
    for page in PAGES:
        for block in blocks_of(page, "json"):
            try:
                json.loads("\n".join(block.lines))
            except ValueError as error:
                pytest.fail(f"{name_of(page)}:{block.start}: {error}")


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


@cache
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
    text = text_of(readme)
    assert len(text.splitlines()) < 160
    before, _, _ = text.partition("## The asset server")
    assert not re.search(r"assay serve|python -m mcp|\btiers?\b", before)


# ── completeness ─────────────────────────────────────────────────────────────────────────────────────────────────────


def text(name: str) -> str:
    return text_of(DOCS / name)


METHODS = {name for revision in REVISIONS for name in (*methods(revision), *extended_methods(revision))}


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
    whole = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])")
    return {
        page.name for page in PAGES if page.parent == DOCS and word in text_of(page) and whole.search(text_of(page))
    }


def test_every_command_is_documented() -> None:
    assert [each.prog for each in commands(parser()) if not pages_with(each.prog)] == []


def test_every_option_is_documented_on_a_page_of_its_command() -> None:
    """`--help` is said once for all commands."""
    for command, option, words in options():
        pages = pages_with("assay" if option == "--help" else command) & pages_with(option)
        assert any(all(page in pages_with(word) for word in words) for page in pages), f"{command} {option} {words}"


@rows("limits", [Limits, SchemaLimits])
def test_every_limit_is_documented_with_its_default(limits: type[Limits] | type[SchemaLimits]) -> None:
    page = text("limits.md")
    for field in fields(limits):
        assert f"| `{field.name}` | {field.default:,} |" in page


SETTING = re.compile(r"^\| `(\w+)\.(\w+)` \| ([\d,.]+) \|", re.MULTILINE)


def test_limits_on_the_page_of_security_are_those_in_force() -> None:
    settings = Settings()
    rows = SETTING.findall(text("security.md"))
    assert len(rows) > 10
    for section, name, default in rows:
        assert default == f"{getattr(getattr(settings, section), name):,}", f"{section}.{name}"


# ── places and texts in the source ───────────────────────────────────────────────────────────────────────────────────

MAPS = [ROOT / "CONTRIBUTING.md", *(DOCS / name for name in ("architecture.md", "glossary.md", "dependencies.md"))]
"""Pages that name files of the project."""


@rows("page", [page for page in MAPS if page.exists()], ids=name_of)
def test_named_files_exist(page: Path) -> None:
    named = re.findall(r"`((?:src|tests|docs|bench|examples|compat)/[\w./-]+)`", text_of(page))
    assert [name for name in named if not (ROOT / name).exists()] == []


@cache
def shown_texts() -> str:
    """Return every string of the source, one a line, with an ellipsis for each value in it, and composed messages."""
    late, crashed = within(1), "it exited with status 1"
    composed = (no_answer("TIMEOUT", late), no_answer("UPSTREAM_FAILURE", crashed))
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
