"""What an `assay.toml` or a `pyproject.toml` of a stranger's directory may decide, and how an operator accepts more."""

import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from assay.settings import Settings, SettingsError, load_cautiously
from assay.settings.settings_files import LONGEST, accepted, remember, standing
from assay.settings.state_directory import state_directory
from kit.command import assay_text
from kit.rows import rows
from kit.strangers import HOSTILE, environment


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A stranger's directory."""
    directory = tmp_path / "checkout"
    directory.mkdir()
    return directory


def assay(directory: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return assay_text(*arguments, cwd=directory, env=environment(directory), **options)


# ── files that stop a guard ──────────────────────────────────────────────────────────────────────────────────────────


def test_access_rules_that_do_not_count_stop_a_guard_that_listens(checkout: Path) -> None:
    """To leave `[auth]` out would let everyone in."""
    (checkout / "assay.toml").write_text(f'[auth.keys.ci]\nhash = "sha256:{"0" * 64}"\n')
    done = assay(checkout, "guard", "--listen", "127.0.0.1:0", "--", "cat")
    assert done.returncode == 2
    assert f"[auth] ignored: this assay.toml is not trusted yet; run assay trust {checkout}" in done.stderr
    assert "[auth] is not trusted yet, and without it every client could connect; run assay trust" in done.stderr


def test_a_link_to_a_device_is_no_file_of_settings(checkout: Path) -> None:
    """The guard would read for ever, or read what its client says."""
    for name, device in (("assay.toml", "/dev/zero"), ("pyproject.toml", "/dev/null")):
        (checkout / name).symlink_to(device)
        done = assay(checkout, "guard", "--", "cat")
        assert (done.returncode, done.stderr) == (2, f"assay: {name}: not a regular file\n")
        (checkout / name).unlink()


@rows(
    "content, reason",
    [
        pytest.param("# " + "x" * LONGEST, "longer than", id="long"),
        pytest.param("a = " + "[" * 50_000, "nested too deeply", id="deep"),
        pytest.param(".".join(["a"] * 100_000) + " = 1", "a key has more than 32 parts", id="key"),
        pytest.param(".".join(['"a"'] * 50_000) + " = 1", "a key has more than 32 parts", id="quoted-key"),
    ],
)
def test_a_file_that_would_cost_too_much_is_refused(checkout: Path, content: str, reason: str) -> None:
    (checkout / "assay.toml").write_text(content)
    done = assay(checkout, "guard", "--", "cat")
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_commands_name_the_file_that_they_take_settings_from(checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text("[tool.assay.limits]\ndepth = 64\n")
    (checkout / "asset.json").write_text("{}")
    (checkout / "talk.jsonl").write_text('{"dir": "c2s", "msg": "{}"}\n')
    for command in (("check", "--policy", "talk.jsonl"), ("validate", "asset.json"), ("replay", "talk.jsonl")):
        assert f"settings from {checkout}/pyproject.toml" in assay(checkout, *command).stderr


# ── what is weaker ───────────────────────────────────────────────────────────────────────────────────────────────────


def ignored(directory: Path, toml: str, *flags: str, **environ: str) -> list[str]:
    (directory / "assay.toml").write_text(toml)
    return [each.name for each in load_cautiously(environ, directory, flags=flags).ignored]


@rows(
    ("stricter", "weaker", "name"),
    [
        ("[guard]\nstrict = true", "[limits]\ndepth = 200", "limits.depth"),
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
        (
            '[[guard.exceptions]]\nrule = "contract/output"\nreason = "x"\nuntil = 2001-01-01',
            '[[guard.exceptions]]\nrule = "contract/output"\nreason = "x"\nuntil = 2099-01-01',
            "guard.exceptions.1",
        ),
    ],
)
def test_the_stricter_direction_counts_and_the_weaker_does_not(
    tmp_path: Path, stricter: str, weaker: str, name: str
) -> None:
    """Of the policy. Each other field is tried upwards and downwards in `test_untrusted_settings.py`."""
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


def test_only_the_first_of_many_ignored_lines_are_named(tmp_path: Path) -> None:
    rows = '[[guard.exceptions]]\nrule = "contract/output"\nreason = "x"\nuntil = 2099-01-01\n' * 100
    (tmp_path / "assay.toml").write_text(rows)
    said: list[str] = []
    load_cautiously({}, tmp_path, log=said.append)
    assert " and 92 more ignored: " in said[-1]
    assert len(said) == 2


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def found(checkout: Path) -> Settings:
    """The settings of a guard that starts in *checkout*."""
    return load_cautiously({"XDG_STATE_HOME": str(checkout.parent / "state")}, checkout).settings


@rows("answer, status", [({"said": "y\n"}, 2), ({"typed": b"\n"}, 1), ({"typed": b"no\n"}, 1), ({"typed": b"y\n"}, 0)])
def test_the_answer_on_a_terminal_decides_about_what_is_shown(checkout: Path, answer: Any, status: int) -> None:
    """In a pipe there is none, and no secret is shown anywhere."""
    (checkout / "assay.toml").write_text(HOSTILE + '[telemetry.headers]\nx-key = "hunter2"\n')
    done = assay(checkout, "trust", "assay.toml", **answer)
    assert done.returncode == status
    assert ("use --yes" in done.stderr) is (status == 2)
    assert "  guard.fail_open = true  (without it: false)\n" in done.stdout
    assert 'telemetry.headers."x-key" = hidden' in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    assert found(checkout).guard.fail_open is (status == 0)


def test_a_trusted_file_counts_until_it_changes_and_not_through_a_link(checkout: Path) -> None:
    """A stranger who knows the path of a trusted file could have its settings in another directory."""
    small = "[journal]\nbytes = 5000\ntotal_bytes = 8000\n[guard]\nfail_open = true\n"
    (checkout / "assay.toml").write_text(small)
    done = assay(checkout, "trust", "assay.toml", "--yes")
    assert (done.returncode, done.stdout.count("  journal.")) == (0, 2)
    assert found(checkout).guard.fail_open
    assert found(checkout).journal.total_bytes == 8000
    other = checkout.parent / "other"
    other.mkdir()
    (other / "assay.toml").symlink_to(checkout / "assay.toml")
    assert found(other) == Settings()
    (checkout / "assay.toml").write_text(small + "# another line\n")
    assert found(checkout) == Settings()


def test_trusted_files_are_listed_and_removed(checkout: Path) -> None:
    (checkout / "assay.toml").write_text(HOSTILE)
    assay(checkout, "trust", "assay.toml", "--yes")
    assert assay(checkout, "trust", "--list").stdout == f"{checkout}/assay.toml\n"
    (checkout / "assay.toml").write_text("")
    (checkout / "assay.toml").write_text('[guard.policy]\n"protocol/progress" = "pass"\n')
    assert 'guard.policy."protocol/progress" = "pass"' in assay(checkout, "trust", "assay.toml").stdout
    assert "(changed: not trusted)" in assay(checkout, "trust", "--list").stdout
    assert "no longer trusted" in assay(checkout, "trust", "--remove", "assay.toml").stderr
    assert assay(checkout, "trust", "--list").stdout == ""


@rows(
    ("name", "toml", "status", "line"),
    [
        ("assay.toml", "[guard]\nstrict = true\n", 0, "cannot weaken the guard"),
        ("assay.toml", "[limits]\ndept = 9\n", 2, "unknown key"),
        ("assay.toml", '[guard]\nfail_open = "yes"\n', 2, "expected true or false"),
        ("other.toml", HOSTILE, 2, "--config takes any other"),
    ],
)
def test_a_file_that_cannot_be_trusted_or_needs_no_trust_is_shown(
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


@rows("content", ["", "[]", "{}", '{"format": 2, "files": {}}', '{"format": 1, "files": {"a": 1}}'])
def test_a_damaged_list_is_shown(tmp_path: Path, content: str) -> None:
    (tmp_path / "assay").mkdir(exist_ok=True)
    (tmp_path / "assay" / "trusted.json").write_text(content)
    (tmp_path / "assay" / "trusted.json").chmod(0o600)
    with pytest.raises(SettingsError, match="not a list of trusted files"):
        accepted({"XDG_STATE_HOME": str(tmp_path)})


@rows(
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
