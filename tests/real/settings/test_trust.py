"""What an `assay.toml` or a `pyproject.toml` of a stranger's directory may decide, and how an operator accepts more."""

import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.settings import Settings, SettingsError, load_cautiously
from assay.settings.locations import LONGEST
from assay.settings.state_directory import state_directory
from assay.settings.trusted_files import accepted, place_of, remember, standing
from kit.command import ASSAY, assay_process_text, variables_but
from kit.sheltered import state_variables

SECONDS = 60

SERVER = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    else:
        result = {"content": [{"type": "text"}]}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""  # noqa: E501 - a program as it is written
"""A server whose results of `tools/call` break `protocol/result`."""

SAID = "".join(
    json.dumps({"jsonrpc": "2.0", **each}) + "\n"
    for each in (
        {
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}}},
    )
)

HOSTILE = """\
[guard]
fail_open = true
lock = "off"
flights = "elsewhere"
[guard.policy]
"*" = "pass"
[journal]
directory = "off"
payloads = true
[telemetry]
endpoint = "http://127.0.0.1:9"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A stranger's directory."""
    directory = tmp_path / "checkout"
    directory.mkdir()
    (directory / "server.py").write_text(SERVER)
    return directory


def environment(directory: Path) -> dict[str, str]:
    return {**variables_but("ASSAY_", "OTEL_"), "XDG_STATE_HOME": str(directory.parent / "state"), "NO_COLOR": "1"}


def assay(directory: Path, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return assay_process_text(*arguments, cwd=directory, env=environment(directory), said=said)


def guard(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A guard in *directory* that enforces and is quiet, in front of a server that breaks a rule."""
    command = ("--", sys.executable, "-IS", "server.py")
    return assay(directory, "guard", "--mode", "enforce", "--quiet", *options, *command, said=SAID)


def stopped(done: subprocess.CompletedProcess[str]) -> bool:
    """Whether the bad result was withheld."""
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["id"] == 1
    return bool(answer["result"].get("isError"))


def records(directory: Path) -> list[str]:
    """The journals in the state directory of whoever starts a guard in *directory*."""
    return [path.read_text() for path in directory.parent.glob("state/assay/servers/*/2*.jsonl")]


# ── a guard in a stranger's directory ────────────────────────────────────────────────────────────────────────────────


def test_the_guard_takes_nothing_from_a_project_file_and_says_so(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text(HOSTILE.replace("[", "[tool.assay."))
    done = guard(checkout)
    assert stopped(done)
    assert len(records(checkout)) == 1
    assert done.stderr == (
        "assay: pyproject.toml: [tool.assay] is ignored by this command; use assay.toml or --config\n"
    )


def test_a_file_that_is_found_weakens_nothing_and_what_is_ignored_is_named(checkout: Path) -> None:
    (checkout / "assay.toml").write_text(HOSTILE)
    done = guard(checkout)
    assert stopped(done)
    [record] = records(checkout)
    assert "payload" not in json.loads(record.splitlines()[-1])
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


def test_a_file_that_is_found_makes_the_guard_stricter_at_once(checkout: Path) -> None:
    (checkout / "assay.toml").write_text('[guard]\nmode = "enforce"\n')
    done = assay(checkout, "guard", "--quiet", "--", sys.executable, "-IS", "server.py", said=SAID)
    assert stopped(done)
    assert done.stderr == f"assay: settings from {checkout}/assay.toml\n"


@pytest.mark.parametrize("limit", ["contract_bytes = 1", "tools = 1", "depth = 4", "frame_bytes = 220"])
def test_a_lower_limit_of_a_found_file_does_not_stop_judging_by_contract(checkout: Path, limit: str) -> None:
    """The guard would forget the schemas, or not read the list, and forward every call."""
    takes = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"name": name, "inputSchema": takes} for name in ("other", "weather")]
    listed = SERVER.replace(
        "    else:\n",
        f"    elif asked.get('method') == 'tools/list':\n        result = {{'tools': {tools}}}\n    else:\n",
    )
    (checkout / "server.py").write_text(listed)
    (checkout / "assay.toml").write_text(f"[limits]\n{limit}\n")
    wrong = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "weather", "arguments": {"city": 5}}}
    before = [*SAID.splitlines()[:2], '{"jsonrpc":"2.0","id":2,"method":"tools/list"}']
    answers, log = talked(checkout, before, [json.dumps(wrong)])
    assert answers[2]["result"]["tools"] == tools
    assert "city" in json.dumps(answers[3]["result"])
    assert answers[3]["result"]["isError"]
    assert f"assay: limits.{limit} ignored: this assay.toml is not trusted yet; run assay trust " in log


def talked(directory: Path, before: list[str], after: list[str]) -> tuple[dict[int, Any], str]:
    """The answers to two turns of a client, the second after the answers to the first; and the log."""
    command = [*ASSAY, "guard", "--mode", "enforce", "--quiet", "--", sys.executable, "-IS", "server.py"]
    with subprocess.Popen(
        command,
        cwd=directory,
        env=environment(directory),
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as guard:
        assert guard.stdin is not None
        assert guard.stdout is not None
        guard.stdin.write("".join(f"{each}\n" for each in before))
        guard.stdin.flush()
        first = [guard.stdout.readline() for each in before if "id" in json.loads(each)]
        rest, log = guard.communicate("".join(f"{each}\n" for each in after), timeout=SECONDS)
    return {each["id"]: each for each in map(json.loads, [*first, *rest.splitlines()])}, log


def test_a_file_that_is_given_counts_as_a_whole(checkout: Path) -> None:
    (checkout / "assay.toml").write_text(HOSTILE)
    done = guard(checkout, "--config", "assay.toml")
    assert not stopped(done)
    assert records(checkout) == []
    assert done.stderr.startswith(f"assay: settings from {checkout}/assay.toml\n")
    assert "ignored" not in done.stderr


def test_a_trusted_file_counts_until_it_changes(checkout: Path) -> None:
    (checkout / "assay.toml").write_text(HOSTILE)
    assert assay(checkout, "trust", "assay.toml", "--yes").returncode == 0
    done = guard(checkout)
    assert not stopped(done)
    assert "ignored" not in done.stderr
    with (checkout / "assay.toml").open("a") as file:
        file.write("# another line\n")
    done = guard(checkout)
    assert stopped(done)
    assert f"ignored: this assay.toml has changed since it was trusted; run assay trust {checkout}" in done.stderr


def test_a_trusted_file_does_not_count_through_a_link_from_elsewhere(checkout: Path) -> None:
    """Otherwise a stranger who knows the path of a trusted file could have its settings in another directory."""
    (checkout / "assay.toml").write_text(HOSTILE)
    assay(checkout, "trust", "assay.toml", "--yes")
    other = checkout.parent / "other"
    other.mkdir()
    (other / "server.py").write_text(SERVER)
    (other / "assay.toml").symlink_to(checkout / "assay.toml")
    assert stopped(guard(other))


def test_access_rules_that_do_not_count_stop_a_guard_that_listens(checkout: Path) -> None:
    """To leave `[auth]` out would let everyone in."""
    (checkout / "assay.toml").write_text(f'[auth.keys.ci]\nhash = "sha256:{"0" * 64}"\n')
    done = assay(checkout, "guard", "--listen", "127.0.0.1:0", "--", "cat")
    assert done.returncode == 2
    assert f"[auth] ignored: this assay.toml is not trusted yet; run assay trust {checkout}" in done.stderr
    assert "[auth] is not trusted yet, and without it every client could connect; run assay trust" in done.stderr


def test_a_link_to_a_device_is_no_file_of_settings(checkout: Path) -> None:
    """The guard would read for ever, or read what its client says."""
    for name, device in (("assay.toml", "/dev/zero"), ("pyproject.toml", "/dev/stdin")):
        (checkout / name).symlink_to(device)
        done = guard(checkout)
        assert (done.returncode, done.stderr) == (2, f"assay: {name}: not a regular file\n")
        (checkout / name).unlink()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("# " + "x" * LONGEST, "longer than", id="long"),
        pytest.param("a = " + "[" * 50_000, "nested too deeply", id="deep"),
        pytest.param(".".join(["a"] * 100_000) + " = 1", "a key has more than 32 parts", id="key"),
        pytest.param(".".join(['"a"'] * 50_000) + " = 1", "a key has more than 32 parts", id="quoted-key"),
    ],
)
def test_a_file_that_would_cost_too_much_is_refused(checkout: Path, content: str, reason: str) -> None:
    (checkout / "assay.toml").write_text(content)
    done = guard(checkout)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_commands_name_the_file_that_they_take_settings_from(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text("[tool.assay.limits]\ndepth = 64\n")
    (checkout / "asset.json").write_text("{}")
    (checkout / "talk.jsonl").write_text('{"dir": "c2s", "msg": "{}"}\n')
    for command in (("check", "--policy", "talk.jsonl"), ("validate", "asset.json"), ("replay", "talk.jsonl")):
        assert f"settings from {checkout}/pyproject.toml" in assay(checkout, *command).stderr


def test_nothing_is_written_to_the_directory(checkout: Path) -> None:
    """Not even where it has a link in the place of a journal."""
    victim = linked(checkout, "runs")
    before = sorted(checkout.rglob("*"))
    done = guard(checkout)
    assert (done.returncode, done.stderr) == (0, "")
    # A server that ends first leaves a file of the last messages.
    broken = assay(checkout, "guard", "--quiet", "--", sys.executable, "-c", "input()", said=SAID)
    assert "the last messages of this session are in" not in broken.stderr
    assert len(list(checkout.parent.glob("state/assay/servers/*/flights/*.jsonl"))) == 1
    assert len(records(checkout)) == 2
    assert sorted(checkout.rglob("*")) == before
    assert sorted(path.name for path in victim.iterdir()) == OLD


@pytest.mark.parametrize(
    "options", [("--journal", "runs"), ("--set", "journal.directory=runs"), ("--config", "mine.toml")]
)
def test_a_journal_that_was_asked_for_may_be_behind_a_link(checkout: Path, options: tuple[str, ...]) -> None:
    victim = linked(checkout, "runs")
    (checkout / "mine.toml").write_text('[journal]\ndirectory = "runs"\n')
    done = guard(checkout, *options)
    assert "no journal" not in done.stderr
    assert len(list(victim.glob("2*.jsonl"))) > 1


def test_a_file_that_is_found_does_not_move_the_journal(checkout: Path) -> None:
    """Nor names the place that the asset server has."""
    linked(checkout, "runs")
    usual = "[journal]\ndirectory = 'runs/mcp_server/envelope_validation'\n"
    (checkout / "assay.toml").write_text(usual)
    assert 'assay: journal.directory = "runs/mcp_server/envelope_validation" ignored: ' in guard(checkout).stderr
    assert len(records(checkout)) == 1
    assert assay(checkout, "trust", "assay.toml", "--yes").returncode == 0
    assert "no journal" not in guard(checkout).stderr
    assert len(records(checkout)) == 1
    assert len(list(checkout.glob("runs/mcp_server/envelope_validation/2*.jsonl"))) == 1


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


# ── what is weaker ───────────────────────────────────────────────────────────────────────────────────────────────────


def ignored(directory: Path, toml: str, *flags: str, **environ: str) -> list[str]:
    (directory / "assay.toml").write_text(toml)
    return [each.name for each in load_cautiously(environ, directory, flags=flags).ignored]


@pytest.mark.parametrize(
    ("stricter", "weaker", "name"),
    [
        ("[limits]\ndepth = 128", "[limits]\ndepth = 200", "limits.depth"),
        ("[limits]\ndepth = 128", "[limits]\ndepth = 5", "limits.depth"),
        ("[limits]\ntools = 5_000", "[limits]\ntools = 1", "limits.tools"),
        ("[limits]\ntools = 5_000", "[limits]\ntools = 50_000", "limits.tools"),
        ("[guard]\nstrict = true", "[guard]\nframe_bytes = 1000", "guard.frame_bytes"),
        ("[guard]\ntimeout = 600", "[guard]\ntimeout = 5", "guard.timeout"),
        ("[guard]\ntimeout = 600", "[guard]\ntimeout = 0", "guard.timeout"),
        ("[guard]\nfail_open = false", "[guard]\nfail_open = true", "guard.fail_open"),
        ('[guard]\nlock = "auto"', '[guard]\nlock = "other.lock"', "guard.lock"),
        ("[journal]\nkeep = 50", "[journal]\nkeep = 1", "journal.keep"),
        ("[journal]\nredact = []", '[journal]\nredact = [".*"]', "journal.redact"),
        ("[journal]\npayloads = false", "[journal]\npayloads = true", "journal.payloads"),
        ("[http]\nhosts = []", '[http]\nhosts = ["evil.example"]', "http.hosts"),
        ("[http]\norigins = []", '[http]\norigins = ["https://evil.example"]', "http.origins"),
        ("[http]\nsessions_each = 1000", "[http]\nsessions_each = 5000", "http.sessions_each"),
        ('[tiers]\ntier = "community"', '[tiers]\ntier = "pro"', "tiers.tier"),
        (
            '[guard.policy]\n"protocol/progress" = "refuse"',
            '[guard.policy]\n"protocol/params" = "pass"',
            'guard.policy."protocol/params"',
        ),
        (
            '[guard.policy]\n"contract/input" = { action = "refuse", repair = true }',
            '[guard.policy]\n"contract/input" = { action = "pass", repair = true }',
            'guard.policy."contract/input".action',
        ),
        (
            '[[guard.exceptions]]\nrule = "protocol/progress"\naction = "refuse"\nreason = "x"\nuntil = 2099-01-01',
            '[[guard.exceptions]]\nrule = "contract/output"\ntool = "t"\nreason = "x"\nuntil = 2099-01-01',
            "guard.exceptions.1",
        ),
    ],
)
def test_the_stricter_direction_counts_and_the_weaker_does_not(
    tmp_path: Path, stricter: str, weaker: str, name: str
) -> None:
    assert ignored(tmp_path, stricter) == []
    assert ignored(tmp_path, weaker) == [name]


def test_settings_that_bound_each_other_are_judged_together(tmp_path: Path) -> None:
    small = "[journal]\nbytes = 5000\ntotal_bytes = 8000\n"
    assert ignored(tmp_path, small) == ["journal.bytes", "journal.total_bytes"]
    assert load_cautiously({}, tmp_path).settings == Settings()
    usual = 1 << 30
    assert ignored(tmp_path, f"[journal]\nbytes = 5000\ntotal_bytes = {usual}\n") == ["journal.bytes"]
    assert ignored(tmp_path, small, "journal.bytes=6000") == ["journal.total_bytes"]
    assert ignored(tmp_path, small, "journal.bytes=6000", "journal.total_bytes=7000") == []


def test_settings_that_bound_each_other_can_be_trusted(checkout: Path) -> None:
    (checkout / "assay.toml").write_text("[journal]\nbytes = 5000\ntotal_bytes = 8000\n")
    assert "assay: journal.bytes = 5000, journal.total_bytes = 8000 ignored: " in guard(checkout).stderr
    done = assay(checkout, "trust", "assay.toml", "--yes")
    assert (done.returncode, done.stdout.count("  journal.")) == (0, 2)
    assert guard(checkout).stderr.count("assay: ") == 1
    # An option that needs a line of the file.
    assert guard(checkout, "--set", "journal.total_bytes=9000").returncode == 0


def test_a_found_file_turns_repair_off_but_not_on(tmp_path: Path) -> None:
    for toml in ("[guard]\nrepair = {}", '[guard.policy]\n"contract/input" = {{ repair = {} }}'):
        assert ignored(tmp_path, toml.format("false")) == []
        assert ignored(tmp_path, toml.format("true")) == []
        assert len(ignored(tmp_path, toml.format("true"), "guard.strict=true")) == 1
    results = '[guard.policy]\n"protocol/cache-hints" = {{ repair = {} }}'
    assert [len(ignored(tmp_path, results.format(value))) for value in ("false", "true")] == [0, 1]
    # Of one rule the file says more than the option, which is for all of them; an option for the same key wins anyway.
    assert len(ignored(tmp_path, toml.format("true"), "guard.repair=false")) == 1


def test_a_line_is_compared_with_what_options_and_variables_say(tmp_path: Path) -> None:
    toml = '[limits]\ndepth = 200\n[guard.policy]\n"protocol/progress" = "pass"\n'
    assert ignored(tmp_path, toml) == ["limits.depth"]
    assert ignored(tmp_path, toml, ASSAY_LIMITS_DEPTH="20") == []
    # By default it is only reported; an option has asked for more, and the more specific would win over it.
    assert ignored(tmp_path, toml, "guard.policy.*=refuse", "limits.depth=9") == ['guard.policy."protocol/progress"']


def test_a_line_of_the_file_never_wins_over_an_option_in_another_spelling(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('[guard.policy]\n"contract/input" = { action = "pass" }\n')
    found = load_cautiously({}, tmp_path, flags=["guard.policy.contract/input=refuse"])
    assert found.settings.guard.policy["contract/input"].action == "refuse"


def test_an_exception_that_has_ended_weakens_nothing(tmp_path: Path) -> None:
    toml = '[[guard.exceptions]]\nrule = "contract/output"\nreason = "x"\nuntil = 2001-01-01\n'
    assert ignored(tmp_path, toml) == []


def test_only_the_first_of_many_ignored_lines_are_named(tmp_path: Path) -> None:
    rows = '[[guard.exceptions]]\nrule = "contract/output"\nreason = "x"\nuntil = 2099-01-01\n' * 100
    (tmp_path / "assay.toml").write_text(rows)
    said: list[str] = []
    load_cautiously({}, tmp_path, log=said.append)
    assert " and 92 more ignored: " in said[-1]
    assert len(said) == 2


def test_a_mistake_in_an_ignored_line_is_still_told(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('[guard]\nfail_open = "yes"\n')
    with pytest.raises(SettingsError, match="expected true or false"):
        load_cautiously({}, tmp_path)


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_trusted_is_shown_first_without_secrets(checkout: Path) -> None:
    (checkout / "assay.toml").write_text(HOSTILE + '[telemetry.headers]\nx-key = "hunter2"\n')
    done = assay(checkout, "trust", "assay.toml", "--yes")
    assert "  guard.fail_open = true  (without it: false)\n" in done.stdout
    assert "  telemetry.headers.x-key" not in done.stdout
    assert 'telemetry.headers."x-key" = hidden' in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


def test_a_pass_that_is_weaker_only_beside_an_option_is_shown_as_well(checkout: Path) -> None:
    (checkout / "assay.toml").write_text('[guard.policy]\n"protocol/progress" = "pass"\n')
    assert 'guard.policy."protocol/progress" = "pass"' in assay(checkout, "trust", "assay.toml").stdout


def test_without_a_terminal_nothing_is_trusted_unasked(checkout: Path) -> None:
    (checkout / "assay.toml").write_text(HOSTILE)
    done = assay(checkout, "trust", "assay.toml", said="y\n")
    assert done.returncode == 2
    assert "use --yes" in done.stderr
    assert stopped(guard(checkout))


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"\n", 1), (b"no\n", 1)])
def test_on_a_terminal_the_answer_decides(checkout: Path, answer: bytes, status: int) -> None:
    (checkout / "assay.toml").write_text(HOSTILE)
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        done = subprocess.run(
            [sys.executable, "-m", "assay", "trust", "assay.toml"],
            cwd=checkout,
            env=environment(checkout),
            stdin=theirs,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == status
    assert stopped(guard(checkout)) is bool(status)


def test_trusted_files_are_listed_and_removed(checkout: Path) -> None:
    (checkout / "assay.toml").write_text(HOSTILE)
    assay(checkout, "trust", "assay.toml", "--yes")
    assert assay(checkout, "trust", "--list").stdout == f"{checkout}/assay.toml\n"
    (checkout / "assay.toml").write_text("")
    assert "(changed: not trusted)" in assay(checkout, "trust", "--list").stdout
    assert "no longer trusted" in assay(checkout, "trust", "--remove", "assay.toml").stderr
    assert assay(checkout, "trust", "--list").stdout == ""


@pytest.mark.parametrize(
    ("name", "toml", "status", "line"),
    [
        ("assay.toml", "[guard]\nstrict = true\n", 0, "cannot weaken the guard"),
        ("assay.toml", "[limits]\ndept = 9\n", 2, "unknown key"),
        ("other.toml", HOSTILE, 2, "--config takes any other"),
    ],
)
def test_a_file_that_cannot_be_trusted_or_needs_no_trust_is_told(
    checkout: Path, name: str, toml: str, status: int, line: str
) -> None:
    (checkout / name).write_text(toml)
    done = assay(checkout, "trust", name, "--yes")
    assert done.returncode == status
    assert line in done.stderr


# ── what is remembered ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_list_is_for_its_owner_alone(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    remember(environ, str(tmp_path / "assay.toml"), b"x")
    path = tmp_path / "assay" / "trusted.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert standing(environ, str(tmp_path / "assay.toml"), b"x") == "trusted"
    path.chmod(0o666)
    with pytest.raises(SettingsError, match="another user owns it or can write it"):
        accepted(environ)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 2, "files": {}}', '{"format": 1, "files": {"a": 1}}'])
def test_a_damaged_list_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "assay").mkdir()
    (tmp_path / "assay" / "trusted.json").write_text(content)
    (tmp_path / "assay" / "trusted.json").chmod(0o600)
    with pytest.raises(SettingsError, match="not a list of trusted files"):
        accepted({"XDG_STATE_HOME": str(tmp_path)})


def test_a_place_follows_links_of_directories_only(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "assay.toml").symlink_to("elsewhere.toml")
    assert place_of(tmp_path / "link" / "assay.toml") == str(tmp_path.resolve() / "real" / "assay.toml")


@pytest.mark.parametrize(
    ("platform", "environ", "directory"),
    [
        ("linux", {"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/assay"),
        ("linux", {"XDG_STATE_HOME": "s", "HOME": "/h"}, "/h/.local/state/assay"),
        ("linux", {"HOME": "/h"}, "/h/.local/state/assay"),
        ("linux", {"HOME": "h"}, None),
        ("linux", {}, None),
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/assay"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/assay"),
    ],
)
def test_the_state_directory_is_where_the_platform_has_it(
    platform: str, environ: dict[str, str], directory: str | None
) -> None:
    assert state_directory(environ, platform) == (None if directory is None else Path(directory))


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_no_test_uses_the_state_directory_of_the_user(platform: str, tmp_path: Path) -> None:
    environ = {"HOME": "/h", "XDG_STATE_HOME": "/s", "LOCALAPPDATA": "/l", **state_variables(str(tmp_path), platform)}
    directory = state_directory(environ, platform)
    assert directory is not None
    assert directory.is_relative_to(tmp_path)
    assert state_variables(str(tmp_path)).keys() <= os.environ.keys()
