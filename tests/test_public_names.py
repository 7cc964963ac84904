"""The stable names: listed here and in the documentation, and the only ones that the documentation uses."""

import ast
import importlib
import pydoc
import re
from collections.abc import Iterator

import assay
from kit.places import ROOT
from kit.rows import rows

SAMPLE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


STABLE = {
    "assay": {
        "ASSET_TOOLS", "CanonicalError", "Catalogue", "Conversation", "Denied", "Enveloper", "Gate", "Inspection",
        "Journal", "JsonRpc", "JsonRpcClient", "JsonRpcError", "JsonRpcServer", "JsonRpcValidator", "Limits", "Locked",
        "Metrics", "Party", "Principal", "ResponseEnvelope", "SchemaLimits", "SchemaRegistry", "SchemaValidator",
        "SettingsError", "Splitter", "Telemetry", "TelemetrySettings", "Tiers", "ToolError", "UpgradeHint",
        "UpgradeRequiredError", "ValidationError", "ValidationMiddleware", "Verdict", "Violation", "admit",
        "envelop_tool_function", "enveloped", "load_settings", "read_lock",
    },
    "assay.judge.syntax": {"read"},
    "assay.judge.envelope": {"JSONRPC", "MCP", "STRICT", "check"},
}  # fmt: skip
"""Every name that keeps its meaning, by module; docs/library.md lists the same ones."""

RENAMED = {"ASSET_TOOLS", "load_settings", "read_lock"}
"""Stable names of objects that have a shorter name in their module."""


def test_the_public_names_are_these() -> None:
    assert set(assay.__all__) == STABLE["assay"]
    assert len(assay.__all__) == len(set(assay.__all__))
    for name in STABLE["assay"] - RENAMED:
        assert getattr(assay, name).__name__ == name


@rows("module", STABLE)
def test_every_stable_name_exists(module: str) -> None:
    loaded = importlib.import_module(module)
    assert [name for name in STABLE[module] if not hasattr(loaded, name)] == []


def test_the_documentation_lists_every_stable_name() -> None:
    page = (ROOT / "docs/library.md").read_text(encoding="utf-8").partition("## Stable names")[2]
    listed = set(re.findall(r"`([\w.]+)`", page))
    assert {*STABLE, *(name for names in STABLE.values() for name in names)} <= listed


def imported(code: str) -> Iterator[tuple[str, str]]:
    """The module and the name of everything that *code* imports from Assay."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "assay":
            yield from ((node.module or "", each.name) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names if each.name.partition(".")[0] == "assay")


def test_the_documentation_imports_stable_names_only() -> None:
    stable = {(module, name) for module, names in STABLE.items() for name in names}
    stable |= {(parent, name) for parent, _, name in (each.rpartition(".") for each in STABLE) if parent}
    stable.add(("assay", ""))
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [
        each for page in pages for code in SAMPLE.findall(page.read_text(encoding="utf-8")) for each in imported(code)
    ]
    assert len(found) > 50
    assert [each for each in found if each not in stable] == []


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(assay, "Nothing")


def test_help_describes_every_public_name() -> None:
    page = pydoc.render_doc(assay, renderer=pydoc.plaintext)  # type: ignore[attr-defined]  # it is there
    described = ("    class {0}(", "\n    {0}(", "\n    {0} = ")
    assert [name for name in assay.__all__ if not any(each.format(name) in page for each in described)] == []
    assert "One conversation between a client and a server." in page
