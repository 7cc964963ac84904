"""Facts and forms that have one place in the source: revisions, error frames, HTTP statuses."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import assay
from assay.spec.revisions import FEATURES, REVISIONS

SOURCE = Path(assay.__file__).parent

DATE = re.compile(r"20\d\d-\d\d-\d\d")

ERROR_FRAMES = {
    "core/render.py": "the one function, `error_frame`",
    "api/jsonrpc.py": "`create_error_response` returns a message as a dictionary, as the library's interface asks",
    "cli/demonstration/demo_server.py": "stands for a server that is not ours",
    "cli/reports/page/page_data.py": "its `error` is why a file could not be read, beside the counts of the file",
}
"""The modules that may write a JSON-RPC error, and why."""

STATUSES = {
    "base/errors.py": "the table",
    "edges/http/statuses.py": "the one function, `status_of`",
    "edges/http/replies.py": "the default of `refuse`, for a request without a message",
    "records/journal/record.py": "records the status that the table has",
    "cli/rules.py": "shows the table",
}
"""The modules that may read the status of a canonical error, and why."""


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its path."""
    found = sorted(SOURCE.rglob("*.py"))
    return {each.relative_to(SOURCE).as_posix(): ast.parse(each.read_text(encoding="utf-8")) for each in found}


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every constant of text or bytes in *tree* that is not a docstring, with its line."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docs:
            if isinstance(node.value, str):
                yield node.lineno, node.value
            elif isinstance(node.value, bytes):
                yield node.lineno, node.value.decode("latin-1")


def keys(tree: ast.AST) -> Iterator[tuple[int, set[object]]]:
    """The constant keys of every dictionary that *tree* writes out, with its line; `**` stands for a spread."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            named = {each.value for each in node.keys if isinstance(each, ast.Constant)}
            yield node.lineno, named | ({"**"} if None in node.keys else set())


def test_only_spec_has_the_date_of_a_revision() -> None:
    """Other modules ask for a feature of the revision, so that a new revision is one more row."""
    found = [
        f"{name}:{line}"
        for name, tree in modules().items()
        if not name.startswith("spec/")
        for line, text in texts(tree)
        if DATE.fullmatch(text)
    ]
    assert found == []


def test_every_revision_has_a_row_of_features() -> None:
    assert tuple(FEATURES) == REVISIONS


def test_only_the_known_modules_write_an_error_frame() -> None:
    """An error is a dictionary with `jsonrpc`, `id` or a spread beside `error`, or text with the member `error`."""
    found = {
        name
        for name, tree in modules().items()
        if not name.startswith("rules/")  # their examples are frames
        and (
            any("error" in each and each & {"jsonrpc", "id", "**"} for _, each in keys(tree))
            or any(re.search(r'"error":(?!null)', text) for _, text in texts(tree))
        )
    }
    assert found == set(ERROR_FRAMES)


@pytest.mark.parametrize("name", ["to_http_status", "http_status"])
def test_only_the_known_modules_read_the_status_of_an_error(name: str) -> None:
    users = {
        path
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == name
    }
    assert users <= set(STATUSES)
