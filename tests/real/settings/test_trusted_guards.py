"""A guard in a stranger's directory: what its `assay.toml` may decide, and that nothing is written there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kit.command import assay_process_text
from kit.guard_process import INITIALIZED, call, frame_of, initialize, scripted
from kit.strangers import HOSTILE, environment

SAID = "".join(f"{frame_of(each).decode()}\n" for each in (initialize(), INITIALIZED, call(1)))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A stranger's directory."""
    directory = tmp_path / "checkout"
    directory.mkdir()
    return directory


def assay(directory: Path, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return assay_process_text(*arguments, cwd=directory, env=environment(directory), said=said)


def guard(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A guard in *directory* that enforces and is quiet, in front of a server that breaks a rule."""
    command = ("--", *scripted(on={"tools/call": [["result", {"content": [{"type": "text"}]}]]}))
    return assay(directory, "guard", "--mode", "enforce", "--quiet", *options, *command, said=SAID)


def stopped(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether the bad result was withheld."""
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["id"] == 1
    return bool(answer["result"].get("isError"))


def records(directory: Path) -> list[str]:
    """The journals in the state directory of whoever starts a guard in *directory*."""
    return [path.read_text() for path in directory.parent.glob("state/assay/servers/*/2*.jsonl")]


def test_a_file_that_is_found_weakens_nothing_and_what_is_ignored_is_named(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text(HOSTILE.replace("[", "[tool.assay."))
    done = guard(checkout)
    assert stopped(done)
    assert len(records(checkout)) == 1
    assert done.stderr == (
        "assay: pyproject.toml: [tool.assay] is ignored by this command; use assay.toml or --config\n"
    )
    (checkout / "pyproject.toml").unlink()

    (checkout / "assay.toml").write_text(HOSTILE)
    done = guard(checkout)
    assert stopped(done)
    assert not any("payload" in json.loads(record.splitlines()[-1]) for record in records(checkout))
    named, ignored = done.stderr.splitlines()
    assert named == f"assay: settings from {checkout}/assay.toml"
    for setting in (
        "guard.fail_open = true",
        'guard.lock = "off"',
        'guard.policy."*" = "pass"',
        'journal.directory = "off"',
        "journal.payloads = true",
        "telemetry.endpoint",
        "guard.flights",
    ):
        assert setting in ignored
    assert ignored.endswith(f" ignored: this assay.toml is not trusted yet; run assay trust {checkout}/assay.toml")


def test_nothing_is_written_to_the_directory_unless_it_was_asked_for(checkout: Path) -> None:
    """Not even where it has a link in the place of a journal."""
    victim = linked(checkout, "runs")
    usual = "[journal]\ndirectory = 'runs/mcp_server/envelope_validation'\n"
    (checkout / "assay.toml").write_text(usual)
    before = sorted(checkout.rglob("*"))
    done = guard(checkout)
    assert done.returncode == 0
    assert 'assay: journal.directory = "runs/mcp_server/envelope_validation" ignored: ' in done.stderr
    # A server that ends first leaves a file of the last messages.
    broken = assay(checkout, "guard", "--quiet", "--", sys.executable, "-c", "input()", said=SAID)
    assert "the last messages of this session are in" not in broken.stderr
    assert len(list(checkout.parent.glob("state/assay/servers/*/flights/*.jsonl"))) == 1
    assert len(records(checkout)) == 2
    assert sorted(checkout.rglob("*")) == before
    assert sorted(path.name for path in victim.iterdir()) == OLD

    (checkout / "mine.toml").write_text('[journal]\ndirectory = "runs"\n')
    for options in (("--journal", "runs"), ("--set", "journal.directory=runs"), ("--config", "mine.toml")):
        count = len(list(victim.glob("2*.jsonl")))
        assert "no journal" not in guard(checkout, *options).stderr
        assert len(list(victim.glob("2*.jsonl"))) > count
    assert len(records(checkout)) == 2


OLD = ["20200101T000000Z-00000000.jsonl", "flight-20200101T000000Z-1.jsonl"]


def linked(checkout: Path, link: str) -> Path:
    """A directory with files of somebody else, to which *link* leads."""
    victim = checkout.parent / "victim"
    victim.mkdir()
    for name in OLD:
        (victim / name).write_text("{}\n")
    place = checkout / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)
    return victim
