"""docs/library.md and docs/library-reference.md: every sample runs, and every public name is there."""

import re
from typing import Any

import assay
from kit.places import ROOT
from kit.rows import rows

DOCS = ROOT / "docs"
TEXTS = {page: (DOCS / page).read_text(encoding="utf-8") for page in ("library.md", "library-reference.md")}


@rows("page", TEXTS)
def test_every_sample_runs(page: str) -> None:
    """The samples of a page make one program: a later sample may use what an earlier one has made."""
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXTS[page], re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # noqa: S102 - our own page
    assert len(blocks) == len(re.findall("^```python$", TEXTS[page], re.MULTILINE)) > 4


@rows("name", assay.__all__)
def test_every_public_name_is_on_a_page(name: str) -> None:
    assert any(f"`{name}`" in text for text in TEXTS.values())
