"""The libraries of the page: copies of what their authors have published."""

import json
from pathlib import Path

import pytest

from kit.browser import HERE
from kit.places import ROOT

VENDOR = ROOT / "src" / "assay" / "web" / "vendor"
MODULES = HERE / "node_modules"

PACKAGES = {
    "htm": ("htm", "dist"),
    "preact": ("preact", "dist", "hooks/dist"),
    "signals": ("@preact/signals", "dist"),
    "signals-core": ("@preact/signals-core", "dist"),
    "uplot": ("uplot", "dist"),
}
"""The package of each folder, and its directories that the files are from."""


def test_the_copies_of_the_libraries_are_those_that_were_published() -> None:
    if not (MODULES / "preact").is_dir():
        pytest.skip("the libraries are not installed: `make test` does it where there is npm")
    for folder in VENDOR.iterdir():
        name, *directories = PACKAGES[folder.name]
        package = MODULES / name
        described = json.loads((package / "package.json").read_text(encoding="utf-8"))
        assert (folder / "VERSION").read_text(encoding="utf-8").strip() == described["version"], name
        for file in folder.glob("*.*"):
            [published] = [
                each / file.name for each in map(package.joinpath, directories) if (each / file.name).is_file()
            ]
            assert lines(file) == lines(published), file.name
        [licence] = [each for each in package.iterdir() if each.name.upper().startswith("LICENSE")]
        assert lines(folder / "LICENSE") == lines(licence), name


def lines(file: Path) -> list[str]:
    """Return the lines of a file, without what names a map that is not here."""
    text = file.read_text(encoding="utf-8").strip().splitlines()
    return [each for each in text if not each.startswith("//# sourceMappingURL")]
