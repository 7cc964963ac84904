"""The action, the hooks of pre-commit and the workflow of the page about CI: they have what runners ask for."""

import re
from pathlib import Path

from kit.ci_files import ACTION, HOOKS, PAGE, PRE_COMMIT, WORKFLOW, steps_of
from kit.command import assay_text
from kit.places import ROOT


def test_the_action_has_what_a_runner_asks_for() -> None:
    assert {"name", "description", "inputs", "runs"} <= set(ACTION)
    assert ACTION["runs"]["using"] == "composite"
    assert all({"description", "default"} == set(given) for given in ACTION["inputs"].values())
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        # An input in a script would be run as a part of it, whatever it says.
        assert "${{" not in step["run"]
        used = " ".join([*step["env"].values(), step.get("if", "")])
        assert set(re.findall(r"inputs\.([\w-]+)", used)) <= set(ACTION["inputs"])
    first = ACTION["runs"]["steps"][0]["run"]
    assert '-m pip install --quiet "${VERSION:-$GITHUB_ACTION_PATH}"' in first
    assert all(f"| `{name}` |" in PAGE for name in ACTION["inputs"])


def test_the_hooks_run(tmp_path: Path) -> None:
    program, *words = HOOKS["assay-check"]["entry"].split()
    assert program == "assay"
    assert assay_text(*words, str(ROOT / "examples" / "conversation.jsonl"), cwd=tmp_path).returncode == 1
    program, *words = HOOKS["assay-lock"]["entry"].split()
    assert program == "assay"
    done = assay_text(*words, cwd=tmp_path)
    assert (done.returncode, "assay.lock" in done.stderr) == (2, True)
    files = re.compile(HOOKS["assay-check"]["files"])
    for name, is_checked in {"recordings/a.jsonl": True, "x/recordings/b/a.jsonl": True, "a.jsonl": False}.items():
        assert bool(files.search(name)) is is_checked


def test_the_hooks_have_what_pre_commit_asks_for() -> None:
    for hook in HOOKS.values():
        assert {"id", "name", "entry", "language"} <= set(hook)
        assert hook["language"] == "python"
    used = [hook["id"] for repo in PRE_COMMIT["repos"] for hook in repo["hooks"]]
    assert used == list(HOOKS)


def test_every_command_uses_the_exit_statuses_of_the_page() -> None:
    known = set(re.findall(r"^\| (\d+) \|", PAGE.partition("## Exit statuses")[2], re.MULTILINE))
    assert known == {"0", "1", "2", "3", "4", "130"}
    for page in (ROOT / "docs").glob("*.md"):
        of_command = page.read_text(encoding="utf-8").partition("## Exit status\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| (\d+) \|", of_command, re.MULTILINE)) <= known, page


def test_the_workflow_uses_the_action_with_inputs_that_it_has() -> None:
    [step] = [step for step in steps_of("action") if "/assay@" in step["uses"]]
    assert set(step["with"]) <= set(ACTION["inputs"])
    # YAML 1.1 reads the key `on` as a truth value; runners do not.
    assert set(WORKFLOW) == {"name", True, "jobs"}
