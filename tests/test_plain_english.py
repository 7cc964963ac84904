"""The words that CONTRIBUTING.md asks to avoid, in the source and in the documentation."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@cache
def avoided() -> re.Pattern[str]:
    """Return the pattern of the first column of the table in CONTRIBUTING.md. "None" of Python is not "none"."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.search(r"^\| do not write \|.*?\n\n", text, re.DOTALL | re.MULTILINE)
    assert table
    cells = [line.split("|")[1] for line in table[0].strip().splitlines()[2:]]
    words = sorted((word.strip() for cell in cells for word in cell.split(",")), key=len, reverse=True)
    assert len(words) > 20
    return re.compile(r"\b(?:" + "|".join(f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in words) + r")\b")


def texts() -> Iterator[Path]:
    """Yield every file of the source and the documentation, except the table itself."""
    for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        if name != "CONTRIBUTING.md":
            yield path


@pytest.mark.parametrize("path", sorted(texts()), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_text_has_none_of_the_words_to_avoid(path: Path) -> None:
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    found = [f"{path.name}:{number}: {line.strip()}" for number, line in lines if avoided().search(line)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Nobody is asked.", True),
        ("a tool is set aside", True),
        ("contract/set-aside", False),
        ("if there is none", True),
        ("if value is None:", False),
        ("a recommended setting", False),
    ],
)
def test_words_are_found_as_words(text: str, found: bool) -> None:
    assert bool(avoided().search(text)) is found
