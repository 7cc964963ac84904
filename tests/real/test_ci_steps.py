"""The action and the workflows of the page about CI: what they run works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from kit.ci_files import ACTION, GITLAB, steps_of
from kit.command import assay_text
from kit.places import ROOT

SAMPLE = str(ROOT / "examples" / "conversation.jsonl")
SECONDS = 60


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


def test_the_action_judges_a_server_and_what_its_tools_give(tmp_path: Path) -> None:
    """A server whose list is fine may have a tool whose result is not."""
    put_server(tmp_path, "with-a-broken-result")
    calls = 'weather {"city": "Paris"}\n\nsearch\n'
    done = act(tmp_path, command="python server.py", calls=calls, fail_on="refuse")
    assert done.returncode == 1, done.stderr
    assert "result of tools/call weather" in done.stdout
    assert "quarantined: search (1 tool)" in done.stdout
    assert len(list((tmp_path / "assay-recordings").iterdir())) == 3
    # A server that says nothing does not pass.
    (tmp_path / "new").mkdir()
    done = act(tmp_path / "new", command="./nowhere")
    assert done.returncode == 2
    assert "nothing to judge" in done.stderr
    done = act(tmp_path)
    assert (done.returncode, "give the input command or recordings" in done.stdout) == (2, True)


def test_the_action_writes_annotations_a_summary_and_sarif_and_takes_a_baseline(tmp_path: Path) -> None:
    sarif, known = tmp_path / "assay.sarif", str(tmp_path / "known.json")
    done = act(tmp_path, recordings=f"{SAMPLE} {SAMPLE}", sarif=str(sarif))
    assert done.returncode == 1
    assert done.stdout.count(f"\n{SAMPLE}\n") == 2
    stop, *lines = done.stdout.splitlines()
    token = stop.removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", token)
    commands = [number for number, line in enumerate(lines) if line.startswith("::")]
    # Messages of the peers are shown before commands are on again.
    assert lines[commands[0]] == f"::{token}::"
    assert commands == list(range(commands[0], len(lines)))
    assert len(commands) > 9
    assert "## Findings" in (tmp_path / "summary").read_text(encoding="utf-8")
    [run] = json.loads(sarif.read_text(encoding="utf-8"))["runs"]
    rule = run["tool"]["driver"]["rules"][0]
    assert rule["helpUri"] == "https://example.org/owner/assay/blob/main/docs/rules.md#syntaxjson"

    assert assay_text("check", "--write-baseline", known, SAMPLE).returncode == 0
    assert act(tmp_path, recordings=SAMPLE, baseline=known).returncode == 0
    done = act(tmp_path, recordings=SAMPLE, baseline=str(tmp_path / "none"))
    assert (done.returncode, "No such file" in done.stderr) == (2, True)


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


def test_jobs_go_on_to_their_judgement_whatever_the_server_does(tmp_path: Path) -> None:
    """A runner stops after the first step that fails; a job of GitLab is one script, which does as well."""
    call, check, *_ = [step["run"] for step in steps_of("commands") if "run" in step][1:]
    install, *commands = GITLAB["mcp"]["script"]
    assert install == "pip install ./.assay"
    put_server(tmp_path, "that-crashes")
    done = run(f"{call}\n{check}", tmp_path)
    assert (done.returncode, "::error" in done.stdout) == (1, True), done.stderr
    put_server(tmp_path, "with-a-broken-result")
    assert run("\n".join(commands), tmp_path).returncode == 1
    assert all((tmp_path / name).is_file() for name in GITLAB["mcp"]["artifacts"]["reports"].values())
