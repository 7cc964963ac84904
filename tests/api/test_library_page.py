"""docs/library.md: every sample runs, and every public name is there."""

import re
from typing import Any

import assay
from kit.places import ROOT
from kit.rows import rows

PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")


def test_every_sample_runs() -> None:
    """The samples of the page make one program: a later sample may use what an earlier one has made."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "library.md", "exec"), names)  # noqa: S102 - our own page
    assert len(blocks) == len(re.findall("^```python$", PAGE, re.MULTILINE)) > 4


@rows("name", assay.__all__)
def test_every_public_name_is_on_a_page(name: str) -> None:
    assert f"`{name}`" in PAGE
