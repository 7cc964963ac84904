"""Fixtures for every test."""

import os
from pathlib import Path

import pytest

# Servers that tests start write no journal, but where one is asked for: most of them run in the checkout.
os.environ.setdefault("ASSAY_JOURNAL", "off")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory with reference data that is no part of the project; a test that needs it is skipped without it."""
    path = Path(os.environ.get("ASSAY_SHARED") or Path(__file__).parents[2] / "shared")
    if not path.is_dir():
        pytest.skip(f"no reference data at {path} (set ASSAY_SHARED)")
    return path
