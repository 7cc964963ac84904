"""Commands judge by an added draft revision only where an option or a setting names it."""

import json
from pathlib import Path
from typing import Any

import pytest
from own_documents import NAME
from own_machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def recording(*messages: dict[str, Any]) -> str:
    return "".join(json.dumps({"dir": "c2s", "msg": json.dumps(each)}) + "\n" for each in messages)


def _asks(method: str, **params: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": NAME,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def test_check_judges_by_a_draft_only_if_it_is_chosen(machine: Machine) -> None:
    machine.good("schemas", "add", NAME, "draft.json")
    said = recording(_asks("tools/preview", name=5))
    without = machine.run("check", "-", said=said)
    assert "protocol/unsupported-revision" in without.stdout
    for chosen in (("--draft", NAME), ("--set", f"guard.draft_revisions={NAME}")):
        done = machine.run("check", *chosen, "-", said=said)
        assert "protocol/params" in done.stdout
        assert f"draft {NAME}, schema: PreviewToolRequest" in done.stdout
        assert "protocol/unsupported-revision" not in done.stdout


def test_check_takes_a_draft_as_the_revision_of_a_recording(machine: Machine) -> None:
    machine.good("schemas", "add", NAME, "draft.json")
    done = machine.run("check", "--draft", NAME, "--revision", NAME, "-", said=recording(_asks("tools/list")))
    assert NAME in done.stdout
    done = machine.run("check", "--revision", NAME, "-", said=recording(_asks("tools/list")))
    assert (done.returncode, done.stderr.startswith(f"assay check: there is no revision '{NAME}'")) == (2, True)


@pytest.mark.parametrize("command", [("check", "-"), ("guard", "--", "true"), ("call", "--", "true")])
def test_a_draft_that_was_not_added_stops_the_command(machine: Machine, command: tuple[str, ...]) -> None:
    machine.good("schemas", "add", "x", "x.json")
    for name, why in (
        ("DRAFT-9", "draft DRAFT-9: no such schema; assay schemas add DRAFT-9 FILE adds it"),
        ("x", "draft x: it is an extension, not a revision; use it in [extensions]"),
        ("../x", "draft ../x: expected a name of 1 to 64 letters, digits, dots, - and _"),
    ):
        done = machine.run(command[0], "--draft", name, *command[1:])
        assert done.returncode == 2
        assert why in done.stderr
