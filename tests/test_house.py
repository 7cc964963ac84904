"""The source: the order of its layers, and facts and forms that have one place: revisions, error frames, statuses."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from assay.spec.revisions import FEATURES, REVISIONS
from kit.places import ROOT
from kit.rows import rows

SOURCE = ROOT / "src" / "assay"

LAYERS = (
    *("model", "web", "spec", "rules", "schema", "judge"),
    *("lock", "guard", "settings", "records", "edges", "assets", "api", "console", "cli"),
)
"""Each package imports only packages to its left."""

LATE = {
    ("model", "spec"): "an annotation",
    ("judge", "lock"): "an annotation",
    ("edges", "assets"): "an annotation",
    ("guard", "records"): "the title of a message and the spelling of findings, for messages that have some",
    ("rules", "schema"): "an annotation",
    ("spec", "schema"): "the compiler of schemas, when the first schema is needed",
}
"""Imports against the order, in functions or for annotations only, and why."""


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Return each module as its path below the package, and its tree."""
    found = sorted(SOURCE.rglob("*.py"))
    return tuple((each.relative_to(SOURCE).as_posix(), ast.parse(each.read_text(encoding="utf-8"))) for each in found)


_WALKED: dict[int, tuple[ast.AST, ...]] = {}


def walked(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, which are found once."""
    if id(tree) not in _WALKED:
        _WALKED[id(tree)] = tuple(ast.walk(tree))
    return _WALKED[id(tree)]


def at_start(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that run when a module is loaded: outside functions and `TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        is_late = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        )
        if isinstance(child, ast.stmt | ast.ExceptHandler) and not is_late:
            yield child
            yield from at_start(child)


@cache
def imported_at_start(tree: ast.Module) -> tuple[str, ...]:
    """Return the modules of ours that *tree* imports when it is loaded."""
    return tuple(
        name
        for node in at_start(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assay")
        for name in ([node.module or ""] if node.module != "assay" else [f"assay.{each.name}" for each in node.names])
    )


def test_every_package_has_a_layer() -> None:
    found = {each.name for each in SOURCE.iterdir() if (each / "__init__.py").is_file()}
    assert found == set(LAYERS)
    assert {each.name for each in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_the_pages_have_no_python_code() -> None:
    """They are files that a browser loads; other packages put them together."""
    found = list((SOURCE / "web").rglob("*.py"))
    assert [each.name for each in found] == ["__init__.py"]
    assert len(ast.parse(found[0].read_text(encoding="utf-8")).body) == 1


@rows("layer", LAYERS)
def test_a_layer_imports_only_those_below_it(layer: str) -> None:
    below = set(LAYERS[: LAYERS.index(layer) + 1]) | {"__version__"}
    wrong = [
        f"{path} imports {name}"
        for path, tree in modules()
        if path.startswith(f"{layer}/")
        for name in imported_at_start(tree)
        if name.split(".")[1] not in below
    ]
    assert wrong == []


def test_later_imports_against_the_order_are_known() -> None:
    found = {
        (layer, target)
        for path, tree in modules()
        for node in walked(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assay.")
        if (layer := path.split("/")[0]) in LAYERS and (target := str(node.module).split(".")[1]) in LAYERS
        if LAYERS.index(target) > LAYERS.index(layer)
    }
    assert found == LATE.keys()


# ── one of each ──────────────────────────────────────────────────────────────────────────────────────────────────────

DATE = re.compile(r"20\d\d-\d\d-\d\d")

ERROR_FRAMES = {
    "judge/render.py": "the one function, `error_frame`",
    "api/jsonrpc.py": "`create_error_response` returns a message as a dictionary, as the library's interface asks",
    "cli/demonstration/demo_server.py": "stands for a server that is not ours",
}
"""The modules that may write a JSON-RPC error, and why."""

STATUSES = {
    "model/errors.py": "the table",
    "edges/http/statuses.py": "the one function, `status_of`",
    "edges/http/replies.py": "the default of `refuse`, for a request without a message",
    "records/record.py": "records the status that the table has",
    "console/message.py": "shows the status that was recorded",
    "cli/rules.py": "shows the table",
}
"""The modules that may read the status of a canonical error, and why."""


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every constant of text or bytes in *tree* that is not a docstring, with its line."""
    docs = {id(node.value) for node in walked(tree) if isinstance(node, ast.Expr)}
    for node in walked(tree):
        if isinstance(node, ast.Constant) and id(node) not in docs:
            if isinstance(node.value, str):
                yield node.lineno, node.value
            elif isinstance(node.value, bytes):
                yield node.lineno, node.value.decode("latin-1")


def keys(tree: ast.AST) -> Iterator[tuple[int, set[object]]]:
    """The constant keys of every dictionary that *tree* writes out, with its line; `**` stands for a spread."""
    for node in walked(tree):
        if isinstance(node, ast.Dict):
            named = {each.value for each in node.keys if isinstance(each, ast.Constant)}
            yield node.lineno, named | ({"**"} if None in node.keys else set())


def test_only_spec_has_the_date_of_a_revision() -> None:
    """Other modules ask for a feature of the revision, so that a new revision is one more row."""
    found = [
        f"{name}:{line}"
        for name, tree in modules()
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
        for name, tree in modules()
        if not name.startswith("rules/")  # their examples are frames
        and (
            any("error" in each and each & {"jsonrpc", "id", "**"} for _, each in keys(tree))
            or any(re.search(r'"error":(?!null)', text) for _, text in texts(tree))
        )
    }
    assert found == set(ERROR_FRAMES)


def test_only_the_known_modules_read_the_status_of_an_error() -> None:
    users = {
        path
        for path, tree in modules()
        for node in walked(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"to_http_status", "http_status"}
    }
    assert users <= set(STATUSES)
