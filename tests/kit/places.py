"""Where things are in the checkout."""

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parents[1]
ROOT: Final = TESTS.parent
DATA: Final = TESTS / "data"
CATALOGUE: Final = ROOT / "examples" / "catalogue"
GOLDEN: Final = DATA / "golden.jsonl"
"""A journal with every kind of record."""
