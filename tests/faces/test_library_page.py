"""docs/library.md: every sample runs, and every public name is there."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import assay

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_every_sample_runs() -> None:
    """They make one program: a later sample may use what an earlier one has made."""
    names: dict[str, Any] = {}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    assert len(BLOCKS) == len(re.findall("^```python$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) > 8


@pytest.mark.parametrize("name", assay.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


def test_importing_the_faces_does_not_pay_for_what_no_verdict_needs() -> None:
    """Source: ours; a hook or a command line starts for one message."""
    script = (
        "import sys, assay.faces.jsonrpc, assay.faces.schema_validator, assay.faces.registry;"
        "print(*{'hashlib', 'logging', 'pathlib', 'urllib.request', 'http.client', 'difflib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
