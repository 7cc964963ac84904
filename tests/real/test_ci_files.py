"""The action, the hooks of pre-commit and the workflow of the page about CI: what they run works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.cli.main import main
from kit.places import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW, GITLAB, PRE_COMMIT = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))

SECONDS = 60
BAD = "python -m assay.cli.demonstration.demo_server"
GOOD = "assay serve"


def run(script: str, place: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A step, as a runner runs it."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    github = {"GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(place), "GITHUB_PATH": str(place / "path")}
    github |= {"GITHUB_SERVER_URL": "https://example.org", "GITHUB_STEP_SUMMARY": str(place / "summary")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=place,
        env={**os.environ, "PATH": path, "MCP_READY_FILE": str(place / "ready"), **github, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


# ── the action ───────────────────────────────────────────────────────────────────────────────────────────────────────


def act(place: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The last step of the action that ran; but for the first, which installs what is here already."""
    values = {name: given["default"] for name, given in ACTION["inputs"].items()}
    values |= {name.replace("_", "-"): value for name, value in inputs.items()}
    for step in ACTION["runs"]["steps"][1:]:
        if step.get("if") == "inputs.command != ''" and not values["command"]:
            continue
        done = run(step["run"], place, **{name: _filled(text, values) for name, text in step["env"].items()})
        if done.returncode:
            break
    return done


def _filled(text: str, values: dict[str, str]) -> str:
    """*text* with the inputs that it names, and the place of the action."""
    text = text.replace("${{ github.action_repository }}", "owner/assay").replace("${{ github.action_ref }}", "main")
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: values[found[1]], text)


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


def test_the_action_judges_a_server(tmp_path: Path) -> None:
    done = act(tmp_path, command=GOOD)
    assert (done.returncode, " ok\n" in done.stdout) == (0, True), done.stderr
    done = act(tmp_path, command=BAD)
    assert (done.returncode, "quarantined: search (1 tool)" in done.stdout) == (1, True), done.stderr
    assert act(tmp_path, command=BAD, fail_on="never").returncode == 0


def test_the_action_calls_tools(tmp_path: Path) -> None:
    """A server whose list is fine may have a tool whose result is not."""
    put_server(tmp_path, "with-a-broken-result")
    server = "python server.py"
    done = act(tmp_path, command=server, calls='weather {"city": "Paris"}\n\nsearch\n', fail_on="refuse")
    assert done.returncode == 1, done.stderr
    assert "result of tools/call weather" in done.stdout
    assert len(list((tmp_path / "assay-recordings").iterdir())) == 3


def test_the_action_does_not_pass_a_server_that_says_nothing(tmp_path: Path) -> None:
    done = act(tmp_path, command="./nowhere")
    assert done.returncode == 2
    assert "nothing to judge" in done.stderr


def test_the_action_judges_recordings(tmp_path: Path) -> None:
    sample = ROOT / "examples" / "conversation.jsonl"
    assert act(tmp_path, recordings=f"{sample} {sample}").stdout.count(f"\n{sample}\n") == 2
    done = act(tmp_path)
    assert (done.returncode, "give the input command or recordings" in done.stdout) == (2, True)


def test_the_action_writes_annotations_a_summary_and_sarif(tmp_path: Path) -> None:
    sample = ROOT / "examples" / "conversation.jsonl"
    sarif = tmp_path / "assay.sarif"
    done = act(tmp_path, recordings=str(sample), sarif=str(sarif))
    assert done.returncode == 1
    stop, *lines = done.stdout.splitlines()
    token = stop.removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", token)
    commands = [number for number, line in enumerate(lines) if line.startswith("::")]
    # Messages of the peers are shown before commands are on again.
    assert lines[commands[0]] == f"::{token}::"
    assert len(commands) == 10
    assert commands == list(range(commands[0], len(lines)))
    assert "## Findings" in (tmp_path / "summary").read_text(encoding="utf-8")
    [run] = json.loads(sarif.read_text(encoding="utf-8"))["runs"]
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["helpUri"] == "https://example.org/owner/assay/blob/main/docs/rules.md#syntaxjson"


def test_the_action_takes_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample, known = str(ROOT / "examples" / "conversation.jsonl"), str(tmp_path / "known.json")
    assert main(["check", "--write-baseline", known, sample]) == 0
    assert act(tmp_path, recordings=sample, baseline=known).returncode == 0
    done = act(tmp_path, recordings=sample, baseline=str(tmp_path / "none"))
    assert (done.returncode, "No such file" in done.stderr) == (2, True)
    capsys.readouterr()


# ── the hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_hooks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    program, *words = HOOKS["assay-check"]["entry"].split()
    assert program == "assay"
    assert main([*words, str(ROOT / "examples" / "conversation.jsonl")]) == 1
    program, *words = HOOKS["assay-lock"]["entry"].split()
    assert program == "assay"
    assert main(words) == 2
    assert "assay.lock" in capsys.readouterr().err
    files = re.compile(HOOKS["assay-check"]["files"])
    assert [bool(files.search(name)) for name in ("recordings/a.jsonl", "x/recordings/b/a.jsonl", "a.jsonl")] == [
        True,
        True,
        False,
    ]


def test_the_hooks_have_what_pre_commit_asks_for() -> None:
    for hook in HOOKS.values():
        assert {"id", "name", "entry", "language"} <= set(hook)
        assert hook["language"] == "python"
    used = [hook["id"] for repo in PRE_COMMIT["repos"] for hook in repo["hooks"]]
    assert used == list(HOOKS)


# ── the workflow ─────────────────────────────────────────────────────────────────────────────────────────────────────


def steps_of(job: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = WORKFLOW["jobs"][job]["steps"]
    return steps


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


FAULTS = ("with-faults", "with-a-broken-result", "that-crashes")


def put_server(place: Path, fault: str) -> None:
    """Put the demonstration server into *place*, with one more *fault*."""
    text = (ROOT / "src" / "assay" / "cli" / "demonstration" / "demo_server.py").read_text(encoding="utf-8")
    wrong = {
        "with-a-broken-result": ('return f"Sunny in', 'return 5 or f"Sunny in'),
        "that-crashes": ('print("weather: cache is warm"', 'sys.exit("weather is gone"'),
    }.get(fault, ("", ""))
    assert wrong[0] in text
    (place / "server.py").write_text(text.replace(*wrong) if wrong[0] else text, encoding="utf-8")


def test_the_commands_of_the_workflow_fail_where_the_server_is_wrong(tmp_path: Path) -> None:
    put_server(tmp_path, "with-faults")
    assert run("assay lock -- python server.py", tmp_path).returncode == 0
    commands = [step["run"] for step in steps_of("commands") if "run" in step]
    assert commands.pop(0) == "python -m pip install ./.assay"
    assert [run(each, tmp_path).returncode for each in commands] == [0, 1, 0]
    server = (tmp_path / "server.py").read_text(encoding="utf-8")
    (tmp_path / "server.py").write_text(server.replace('"name": "report"', '"name": "summary"'), encoding="utf-8")
    assert run(commands[-1], tmp_path).returncode == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_the_workflow_goes_on_to_its_judgement_whatever_the_server_does(tmp_path: Path, fault: str) -> None:
    """A runner stops after the first step that fails."""
    put_server(tmp_path, fault)
    call, check, *_ = [step["run"] for step in steps_of("commands") if "run" in step][1:]
    done = run(f"{call}\n{check}", tmp_path)
    assert (done.returncode, "::error" in done.stdout) == (1, True), done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_the_job_of_gitlab_writes_the_reports_that_it_names(tmp_path: Path, fault: str) -> None:
    put_server(tmp_path, fault)
    install, *commands = GITLAB["mcp"]["script"]
    assert install == "pip install ./.assay"
    # A job is one script, which ends at the first command that fails.
    assert run("\n".join(commands), tmp_path).returncode == 1
    assert all((tmp_path / name).is_file() for name in GITLAB["mcp"]["artifacts"]["reports"].values())
