"""The public surface is small, and pinned."""

import subprocess
import sys

import assay


def test_the_public_names_are_these() -> None:
    assert sorted(assay.__all__) == [
        "CanonicalError",
        "Conversation",
        "JsonRpc",
        "JsonRpcClient",
        "JsonRpcError",
        "JsonRpcServer",
        "JsonRpcValidator",
        "Party",
        "ResponseEnvelope",
        "SchemaRegistry",
        "SchemaValidator",
        "ToolError",
        "UpgradeHint",
        "UpgradeRequiredError",
        "ValidationError",
        "ValidationMiddleware",
        "Verdict",
        "Violation",
        "envelop_tool_function",
    ]
    for name in assay.__all__:
        assert getattr(assay, name).__name__ == name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(assay, "Nothing")


def printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_dir_shows_every_public_name_before_it_is_used() -> None:
    shown = printed("import assay; print(*dir(assay))").split()
    assert set(assay.__all__) <= set(shown)
    assert {"__version__", "__doc__"} <= set(shown)
    assert not [name for name in shown if name not in assay.__all__ and not name.startswith("__")]


def test_help_describes_every_public_name() -> None:
    page = printed("import assay, pydoc; print(pydoc.render_doc(assay, renderer=pydoc.plaintext))")
    assert [name for name in assay.__all__ if f"    class {name}(" not in page and f"\n    {name}(" not in page] == []
    assert "One conversation between a client and a server." in page


def modules_after(code: str) -> set[str]:
    script = f"import sys; {code}; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


def test_importing_assay_loads_nothing_that_is_not_used() -> None:
    loaded = modules_after("import assay")
    assert not {name for name in loaded if name.startswith("assay.")}
    assert not loaded & {"orjson", "jsonschema_rs", "jiter"}


def test_judging_a_message_loads_no_face_and_no_command() -> None:
    loaded = modules_after("from assay import Conversation, Party; Conversation().hear(Party.CLIENT, b'{}')")
    assert "assay.core.conversation" in loaded
    assert not loaded & {
        "assay.api.jsonrpc", "assay.api.schema_validator", "assay.api.registry", "assay.base.message", "assay.cli",
        "logging", "argparse", "urllib.request", "difflib",
    }  # fmt: skip


def test_the_help_loads_no_engine() -> None:
    loaded = modules_after("from assay.cli.main import parser; parser()")
    assert not loaded & {"orjson", "jsonschema_rs", "jiter", "assay.core.conversation", "assay.spec.schema"}
