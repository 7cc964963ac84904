"""`assay schemas add` and `remove`, as processes: what is kept, what is refused, and what other commands show of it."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from own_documents import NAME, draft_document, written
from own_machine import Machine

from assay.settings.schema_files import LONGEST
from assay.spec.revisions import LATEST, REVISIONS


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_draft_revision_is_read_and_kept_for_this_user_alone(machine: Machine) -> None:
    assert machine.good("schemas", "add", NAME, "draft.json") == (
        f"added {NAME}: a draft revision, 158 definitions, 19 methods\n"
        f"5 changes from {LATEST}, 1 of them breaking; assay schemas diff {LATEST} {NAME} lists them\n"
        f"use it with --draft {NAME}\n"
    )
    [kept] = machine.folder.iterdir()
    assert kept.name == f"{NAME}.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(machine.folder.stat().st_mode) == 0o700
    assert json.loads(kept.read_bytes()) == draft_document()


def test_an_extension_is_read_and_kept(machine: Machine) -> None:
    assert machine.good("schemas", "add", "x", "x.json") == (
        "added x: an extension, 5 definitions, 0 methods\n"
        'use it in assay.toml: [extensions."com.example/name"] with schema = "x"\n'
    )
    assert machine.good("schemas", "add", "x", "x.json").startswith("replaced x: ")


def test_added_schemas_are_listed_in_a_block_of_their_own(machine: Machine) -> None:
    before = machine.good("schemas", "list")
    machine.good("schemas", "add", NAME, "draft.json")
    machine.good("schemas", "add", "x", "x.json")
    assert machine.good("schemas", "list") == before + (
        "\n"
        "draft          definitions  methods  standing\n"
        "DRAFT-2027-v1          158       19  added; a draft of a revision\n"
        "x                        5        0  added; a draft of an extension\n"
    )
    assert machine.good("schemas", "list", "x").split() == ["AskParams", "DoneParams", "Job", "RunParams", "RunResult"]


def test_a_file_that_no_longer_can_be_used_is_listed_with_the_reason(machine: Machine) -> None:
    machine.good("schemas", "add", "x", "x.json")
    (machine.folder / "x.json").write_bytes(b"{")
    [row] = machine.good("schemas", "list").split("standing\n")[2].splitlines()
    assert row.startswith("x                      -        -  cannot be used: not valid JSON: ")
    assert machine.refused("schemas", "show", "x", "Job").startswith("x: not valid JSON: ")


def test_show_and_diff_take_added_names(machine: Machine) -> None:
    machine.good("schemas", "add", NAME, "draft.json")
    machine.good("schemas", "add", "x", "x.json")
    shown = json.loads(machine.good("schemas", "show", NAME, "PreviewToolResult"))
    assert shown == draft_document()["$defs"]["PreviewToolResult"]
    closure = json.loads(machine.good("schemas", "show", "x", "RunParams", "--closure"))
    assert {"RunParams", "Job", "Tool"} <= closure["$defs"].keys()
    changed = machine.good("schemas", "diff", LATEST, NAME, "--definition", "ListToolsResult")
    assert changed == (
        f"ListToolsResult\n  + total  new, required: integer\n1 changes from {LATEST} to {NAME}, 0 of them breaking\n"
    )
    assert machine.refused("schemas", "show", "x", "Jobb") == "x has no definition 'Jobb'; did you mean Job?"


def test_export_writes_only_what_is_part_of_assay(machine: Machine) -> None:
    machine.good("schemas", "add", NAME, "draft.json")
    done = machine.run("schemas", "export", "out")
    assert done.returncode == 0
    assert NAME not in done.stderr
    assert not (machine.directory / "out" / f"{NAME}.json").exists()


def test_remove_forgets_a_schema(machine: Machine) -> None:
    machine.good("schemas", "add", NAME, "draft.json")
    assert machine.refused("schemas", "remove", "DRAFT-2027") == f"DRAFT-2027: no such schema; did you mean {NAME}?"
    assert machine.good("schemas", "remove", NAME) == f"removed {NAME}\n"
    assert list(machine.folder.iterdir()) == []
    assert machine.refused("schemas", "show", NAME, "Tool").startswith(f"there is no revision '{NAME}'; there are ")


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *[(each, "the name of a released revision; choose another one") for each in (*REVISIONS, "latest")],
        *[(each, "the name of an official extension; choose another one") for each in ("tasks", "skills", "ui")],
        *[
            (each, "expected a name of 1 to 64 letters, digits, dots, - and _, which does not end in .json")
            for each in ("", "..", ".", "a/b", "a b", "../x", "x" * 65, "é", "x.json", "a\nb")
        ],
    ],
)
def test_a_name_that_cannot_be_used_is_refused(machine: Machine, name: str, why: str) -> None:
    for arguments in (("add", name, "draft.json"), ("remove", name)):
        assert machine.refused("schemas", *arguments).endswith(f": {why}")
    assert not machine.folder.exists()


def _deep(levels: int) -> bytes:
    return b'{"$defs":{"A":' + b'{"not":' * levels + b"{}" + b"}" * levels + b"}}"


HOSTILE: dict[str, tuple[Any, str]] = {
    "truncated": (json.dumps(draft_document()).encode()[:-100], "not valid JSON: "),
    "empty": (b"", "not valid JSON: "),
    "text": (b"# Model Context Protocol\n", "not valid JSON: "),
    "binary": (bytes(range(256)), "not valid JSON: "),
    "no definitions": ({"type": "object"}, "expected definitions, as one object under $defs or definitions; use the "),
    "an array": ([], "expected a JSON object with definitions"),
    "dangling": (
        {"$defs": {**draft_document()["$defs"], "Tool": {"$ref": "#/$defs/Toool"}}},
        "Tool refers to Toool, which is missing; did you mean Tool?",
    ),
    "dangling in an extension": ({"$defs": {"A": {"$ref": "#/$defs/Gone"}}}, "A refers to Gone, which neither the "),
    "recursive": ({"$defs": {"A": {"$ref": "#/$defs/A"}}}, "A: expected references that come to an end at one value"),
    "elsewhere": ({"$defs": {"A": {"$ref": "file:///etc/passwd"}}}, "A/$ref: expected a definition of this file"),
    "deep": (_deep(900), "A: nested more than 48 levels deep"),
    "very deep": (_deep(200_000), "not valid JSON: "),
    "costly": (
        {"$defs": {f"A{n}": {"anyOf": [{"$ref": f"#/$defs/A{n + 1}"}] * 3} for n in range(20)} | {"A20": {}}},
        "expected ",
    ),
    "wrong keyword": ({"$defs": {"A": {"type": "text"}}}, "A/type: expected "),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_that_cannot_be_used_is_refused_and_not_kept(machine: Machine, kind: str) -> None:
    document, why = HOSTILE[kind]
    written(machine.directory / "bad.json", document)
    line = machine.refused("schemas", "add", "bad", "bad.json")
    assert line.startswith("bad.json: ")
    assert why in line
    assert len(line) < 400
    assert not machine.folder.exists()


def test_a_file_of_50_megabytes_is_refused_without_reading_it(machine: Machine) -> None:
    with (machine.directory / "bad.json").open("wb") as file:
        file.truncate(50 << 20)
    line = machine.refused("schemas", "add", "bad", "bad.json")
    assert line == f"bad.json: it has {50 << 20:,} bytes or more; the most is {LONGEST:,}"


def test_what_is_not_a_readable_file_is_refused(machine: Machine) -> None:
    os.mkfifo(machine.directory / "pipe")
    assert machine.refused("schemas", "add", "bad", "pipe") == "pipe: not a regular file; expected a JSON Schema file"
    assert machine.refused("schemas", "add", "bad", ".") == ".: not a regular file; expected a JSON Schema file"
    assert machine.refused("schemas", "add", "bad", "gone.json") == "gone.json: No such file or directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(machine: Machine) -> None:
    (machine.directory / "x.json").chmod(0)
    assert machine.refused("schemas", "add", "bad", "x.json") == "x.json: Permission denied"


def test_a_link_in_place_of_the_directory_is_not_followed(machine: Machine) -> None:
    machine.folder.parent.mkdir(parents=True)
    (machine.directory / "elsewhere").mkdir()
    machine.folder.symlink_to(machine.directory / "elsewhere")
    assert "it is a symbolic link" in machine.refused("schemas", "add", "x", "x.json")
    assert list((machine.directory / "elsewhere").iterdir()) == []
