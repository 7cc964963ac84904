"""What is published: the wheel, the source distribution and the image have all that the commands need."""

import re
import shlex
import tomllib
from email.message import Message
from email.parser import Parser
from typing import Any
from zipfile import ZipFile

import pytest

from assay.cli.main import parser
from kit.dockerfile import copied, rests_of, words_of
from kit.places import ROOT

CONFIGURATION: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = CONFIGURATION["project"]
BESIDE: dict[str, str] = CONFIGURATION["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
"""What the wheel has from other places of the checkout, and where."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    from hatchling.builders.wheel import WheelBuilder

    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return ZipFile(path)


def metadata(wheel: ZipFile) -> Message:
    return Parser().parsestr(wheel.read("mcp_assay-0.1.0.dist-info/METADATA").decode())


# ── the wheel ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: ZipFile) -> None:
    """A pattern of .gitignore leaves files out of a wheel as well, without a word."""
    there = {
        f"{inside}/{each.relative_to(ROOT / source).as_posix()}"
        for source, inside in {"src/assay": "assay", **BESIDE}.items()
        for each in (ROOT / source).rglob("*")
        if each.is_file() and "__pycache__" not in each.parts
    }
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == there


def test_the_wheel_has_the_command_and_the_licences_of_what_it_brings_along(wheel: ZipFile) -> None:
    written = wheel.read("mcp_assay-0.1.0.dist-info/entry_points.txt").decode()
    assert written.split() == ["[console_scripts]", "assay", "=", "assay.cli.main:main"]
    kept = "mcp_assay-0.1.0.dist-info/licenses/"
    vendored = (each.relative_to(ROOT).as_posix() for each in (ROOT / "src/assay/web/vendor").glob("*/LICENSE"))
    for name in ("LICENSE", *vendored):
        assert wheel.read(kept + name) == (ROOT / name).read_bytes()


def test_the_classifiers_name_the_systems_that_the_guard_runs_on(wheel: ZipFile) -> None:
    classifiers = metadata(wheel).get_all("Classifier") or []
    assert [each for each in classifiers if each.startswith("Operating System")] == [
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
    ]


def test_the_page_about_installation_names_the_versions_of_the_classifiers() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for version in versions():
        assert f"| Python {version} |" in page


def versions() -> list[str]:
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each) for each in PROJECT["classifiers"])
    return [each[1] for each in found if each is not None]


# ── the image ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_image_is_built_from_files_that_are_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    for name in copied():
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored
    licences = {each for each in PROJECT["license-files"] if not each.startswith("src/")}
    assert {"pyproject.toml", "src", PROJECT["readme"], *licences, *BESIDE} <= set(copied())


def test_the_image_starts_the_command_with_a_known_python_as_a_user_without_rights() -> None:
    assert {re.sub(r"python:(3\.\d+)-slim.*", r"\1", rest) for rest in rests_of("FROM")} <= set(versions())
    (extras,) = re.findall(r'"\.\[(.+)\]"', " ".join(rests_of("RUN")))
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert words_of("ENTRYPOINT") == ["assay"]
    assert "assay" in PROJECT["scripts"]
    (user,) = rests_of("USER")
    assert all(part.isdigit() and int(part) > 0 for part in user.split(":"))


def test_the_commands_of_the_page_for_containers_exist() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").replace("\\\n", " ")
    found = [shlex.split(line) for line in page.splitlines() if "docker run" in line]
    assert len(found) == 3
    for words in found:
        given = words[words.index("guard") :]
        assert words[words.index("guard") - 1] in {"assay", "time"}, "the image"
        assert parser("guard").parse_args(given).chosen == "guard"
