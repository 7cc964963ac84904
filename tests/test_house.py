"""The layout of the package: the order of its layers, and names that exist only once."""

import ast
from collections.abc import Iterator
from functools import cache

from kit.places import ROOT
from kit.rows import rows

SOURCE = ROOT / "src" / "assay"

LAYERS = (
    *("base", "web", "spec", "rules", "engine", "contracts", "ladder", "core"),
    *("lock", "guard", "settings", "records", "edges", "assets", "api", "console", "cli"),
)
"""Each package imports only packages to its left."""

LATE = {
    ("base", "core"): "a name of a server is shown without secrets; most commands never show one",
    ("base", "spec"): "an annotation",
    ("core", "lock"): "an annotation",
    ("edges", "assets"): "an annotation",
    ("guard", "cli"): "the title of a message, for a summary that most sessions never print",
    ("guard", "records"): "the spelling of findings, for messages that have some",
    ("rules", "engine"): "an annotation",
    ("spec", "engine"): "the compiler of schemas, when the first schema is needed",
}
"""Imports against the order, in functions or for annotations only, and why."""


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Return each module as its path below the package, and its tree."""
    found = sorted(SOURCE.rglob("*.py"))
    return tuple((each.relative_to(SOURCE).as_posix(), ast.parse(each.read_text(encoding="utf-8"))) for each in found)


def imported_at_start(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of ours that *tree* imports when it is loaded: outside functions and `TYPE_CHECKING`."""
    late = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in late and (node.module or "").startswith("assay"):
            yield from [node.module or ""] if node.module != "assay" else [f"assay.{each.name}" for each in node.names]


def test_every_package_has_a_layer() -> None:
    found = {each.name for each in SOURCE.iterdir() if (each / "__init__.py").is_file()}
    assert found == set(LAYERS)
    assert {each.name for each in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_the_pages_have_no_python_code() -> None:
    """They are files that a browser loads; what puts them together is elsewhere."""
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
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assay.")
        if (layer := path.split("/")[0]) in LAYERS and (target := str(node.module).split(".")[1]) in LAYERS
        if LAYERS.index(target) > LAYERS.index(layer)
    }
    assert found == LATE.keys()
