"""The configuration: where it comes from, what wins, what is said about a slip, and what the server makes of it."""

import os
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from generated_pages import described

from assay.model.limits import REQUESTS, Limits
from assay.settings import ApiKey, Auth, Jwt, Settings, SettingsError, TierSettings, load
from assay.settings.loading import RESERVED, keys, variable
from kit.command import assay_text, variables_but
from kit.places import ROOT
from kit.rows import rows

PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
SECTIONS = ", ".join(sorted(each.name for each in fields(Settings)))


def loaded(directory: Path, toml: str | bytes = "", /, *flags: str, **environ: str) -> Settings:
    """The settings of a directory with this `assay.toml`."""
    if toml:
        (directory / "assay.toml").write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    return load(environ, directory, flags=flags)


def objection(directory: Path, toml: str | bytes = "", /, *flags: str, **environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        loaded(directory, toml, *flags, **environ)
    [line] = str(caught.value).splitlines()
    return line


# ── where settings come from ─────────────────────────────────────────────────────────────────────────────────────────


def test_without_any_all_is_as_the_dataclasses_say(tmp_path: Path) -> None:
    assert loaded(tmp_path) == Settings(limits=Limits(), tiers=TierSettings(tier="community", features={}))


def test_a_file_of_our_own_wins_over_the_project_file_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.assay.limits]\ndepth = 32\ntools = 9\n")
    assert load({}, tmp_path).limits == Limits(depth=32, tools=9)
    (tmp_path / "assay.toml").write_text("[limits]\ndepth = 64\n")
    said: list[str] = []
    assert load({}, tmp_path, log=said.append).limits == Limits(depth=64)
    assert said == [
        "pyproject.toml: [tool.assay] is ignored, because assay.toml exists",
        f"settings from {tmp_path}/assay.toml",
    ]


@rows("content", ["", "[project]\nname = 'mcp-assay'\n", "[tool.other]\nx = 1\n", "no toml", "tool = 3"])
def test_a_project_file_of_somebody_else_is_none_of_our_business(tmp_path: Path, content: str) -> None:
    (tmp_path / "pyproject.toml").write_text(content)
    assert loaded(tmp_path) == Settings()


def test_later_wins_file_then_variable_then_option(tmp_path: Path) -> None:
    toml = '[limits]\ndepth = 10\ntools = 10\nsettled = 10\n[tiers.features]\npopulate_backend = "pro"\n'
    found = loaded(tmp_path, toml, "limits.depth=30", ASSAY_LIMITS_DEPTH="20", ASSAY_LIMITS_TOOLS="20")
    assert found.limits == Limits(depth=30, tools=20, settled=10)
    assert found.tiers == TierSettings("community", {"populate_backend": "pro"})


def test_another_file_can_be_named_by_option_or_variable(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text("[limits]\ndepth = 1\n")
    (tmp_path / "two.toml").write_text("[limits]\ndepth = 2\n")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "pyproject.toml").write_text("[tool.assay.limits]\ndepth = 3\n")
    assert load({}, tmp_path).limits.depth == 1
    assert load({"ASSAY_CONFIG": "two.toml"}, tmp_path).limits.depth == 2
    assert load({"ASSAY_CONFIG": "two.toml"}, tmp_path, file="below/pyproject.toml").limits.depth == 3
    assert load({"ASSAY_CONFIG": ""}, tmp_path).limits.depth == 1
    assert load({}, tmp_path, file=os.devnull).limits == Limits()


@rows("name", sorted(RESERVED - {"ASSAY_CONFIG"}))
def test_reserved_variables_are_no_settings(tmp_path: Path, name: str) -> None:
    said: list[str] = []
    assert load({name: "x"}, tmp_path, log=said.append) == Settings()
    assert said == []


def test_a_strange_variable_breaks_nothing_but_is_mentioned(tmp_path: Path) -> None:
    """Ours: somebody else's program may use our prefix; a slip in the section's name must not be silent."""
    said: list[str] = []
    environ = {"ASSAY_LIMIT_DEPTH": "3", "ASSAY_LIMITS_DEPTH": "", "ASSAY_ZZZ": "1", "ASSAY_EMPTY": "", "OTHER": "x"}
    assert load(environ, tmp_path, log=said.append) == Settings()
    assert said[0].startswith("ASSAY_LIMIT_DEPTH: unknown setting; did you mean ASSAY_LIMITS_DEPTH")
    assert said[1:] == ["ASSAY_ZZZ: unknown setting (ignored)"]


def test_every_setting_has_a_variable_of_its_own() -> None:
    rows = [each.path for each in keys().values()]
    assert len({variable(path) for path in rows} | RESERVED) == len(rows) + len(RESERVED)
    assert {path[1] for path in rows if path[0] == "limits"} == {each.name for each in fields(Limits)}


# ── slips ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("toml", "line"),
    [
        ("[limits]\nframe_byte = 1", "limits.frame_byte: unknown key; did you mean frame_bytes?"),
        ("[limit]\ndepth = 1", "limit: unknown key; did you mean limits?"),
        ("depth = 1", "depth: unknown key; did you mean limits.depth?"),
        ("zzz = 1", f"zzz: unknown key; known keys: {SECTIONS}"),
        ('[tiers.features]\npopulate = "pro"', "tiers.features.populate: unknown key; did you mean populate_backend?"),
        ('"li\\nmits" = 1', "'li\\nmits': unknown key; did you mean limits?"),
        ("limits = 3", "limits: expected a table, found 3"),
        ("[[limits]]", "limits: expected a table, found an array of 1 item"),
        ('[limits]\ndepth = "8"', 'limits.depth: expected an integer, found the string "8"'),
        ("[limits]\ndepth = true", "limits.depth: expected an integer, found true"),
        ("[limits]\ndepth = 8.0", "limits.depth: expected an integer, found 8.0"),
        ("[limits.depth]\nx = 1", "limits.depth: expected an integer, found a table"),
        ("[limits]\ndepth = 2020-01-02", "limits.depth: expected an integer, found the date 2020-01-02"),
        ("[limits]\ndepth = 0", "limits.depth: the limit depth must be at least 1"),
        ("[limits]\ndepth = 999", "limits.depth: the limit depth must be at most 254"),
        (
            '[tiers]\ntier = "por"',
            'tiers.tier: expected one of community, pro, enterprise, found the string "por"; did you mean pro?',
        ),
        ("[tiers]\ntier = 1", "tiers.tier: expected one of community, pro, enterprise, found 1"),
        ("[guard]\nstrict = 1", "guard.strict: expected true or false, found 1"),
        ("[guard]\ntimeout = nan", "guard.timeout: expected a number, found nan"),
        ('[http]\norigins = ["a", 1]', "http.origins: expected an array of strings, found an array of 2 items"),
        ('[http]\norigins = "a"', 'http.origins: expected an array of strings, found the string "a"'),
        ("[limits", "not valid TOML: Expected ']' at the end of a table declaration (at end of document)"),
        (b"\xff", "expected UTF-8"),
    ],
)
def test_a_slip_in_the_file_is_shown_in_one_line_with_its_place(tmp_path: Path, toml: str | bytes, line: str) -> None:
    assert objection(tmp_path, toml) == f"assay.toml: {line}"


def test_a_slip_in_the_project_file_names_the_whole_key(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.assay.limits]\ndept = 1\n")
    assert objection(tmp_path) == "pyproject.toml: tool.assay.limits.dept: unknown key; did you mean depth?"
    (tmp_path / "pyproject.toml").write_text("[tool]\nassay = 1\n")
    assert objection(tmp_path) == "pyproject.toml: tool.assay: expected a table, found 1"


@rows(
    "flags, environ, line",
    [
        ((), {"ASSAY_LIMITS_DEPHT": "1"}, "ASSAY_LIMITS_DEPHT: unknown setting; did you mean ASSAY_LIMITS_DEPTH"),
        ((), {"ASSAY_LIMITS_DEPTH": "many"}, 'ASSAY_LIMITS_DEPTH: expected an integer, found the string "many"'),
        ((), {"ASSAY_LIMITS_DEPTH": "0"}, "ASSAY_LIMITS_DEPTH: the limit depth must be at least 1"),
        ((), {"ASSAY_TIERS_TIER": "gold"}, "ASSAY_TIERS_TIER: expected one of community, pro, enterprise, found"),
        ((), {"ASSAY_CONFIG": "nowhere.toml"}, "ASSAY_CONFIG nowhere.toml: No such file or directory"),
        (("limits.depth",), {}, "--set limits.depth: expected SECTION.KEY=VALUE"),
        (("limits.dept=1",), {}, "--set limits.dept: unknown key; did you mean depth?"),
        (("limits=1",), {}, "--set limits: expected one of its keys, such as limits.frame_bytes"),
        (("limits.depth.x=1",), {}, "--set limits.depth.x: unknown key"),
        (("limits.depth=x",), {}, '--set limits.depth: expected an integer, found the string "x"'),
        (("=1",), {}, f"--set : unknown key; known keys: {SECTIONS}"),
    ],
)
def test_a_slip_in_a_variable_or_an_option_is_shown_with_its_name(
    tmp_path: Path, flags: tuple[str, ...], environ: dict[str, str], line: str
) -> None:
    assert objection(tmp_path, "", *flags, **environ).startswith(line)


def test_a_slip_is_one_even_where_something_later_wins(tmp_path: Path) -> None:
    assert "limits.depth" in objection(tmp_path, "[limits]\ndepth = '0'", "limits.depth=5")


def test_variables_are_read_as_their_settings_are(tmp_path: Path) -> None:
    found = loaded(
        tmp_path, ASSAY_GUARD_STRICT="TRUE", ASSAY_GUARD_TIMEOUT="3", ASSAY_HTTP_ORIGINS="https://a, https://b"
    )
    assert (found.guard.strict, found.guard.timeout, found.http.origins) == (True, 3.0, ("https://a", "https://b"))
    assert objection(tmp_path, ASSAY_GUARD_STRICT="yes").startswith("ASSAY_GUARD_STRICT: expected true or false")
    said = objection(tmp_path, ASSAY_AUTH_KEYS_CI_HASH="5555")
    assert said == "ASSAY_AUTH_KEYS_CI_HASH: no variable can set auth.keys.NAME.hash; use a file of settings"


# ── who may come in ──────────────────────────────────────────────────────────────────────────────────────────────────

HASH = f"sha256:{'0a' * 32}"
NO_ONE = "auth: [auth] has neither keys nor jwt, so no client could connect; remove [auth] to accept all clients"
NO_HTTPS = "auth.jwt.jwks: jwks must be an https URL"
ALGORITHMS = "auth.jwt.algorithms: expected an array of strings, each one of RS256"


@rows(
    ("toml", "line"),
    [
        ("[auth]", NO_ONE),
        ("[auth.keys]", NO_ONE),
        ("[auth.keys.ci]", "auth.keys.ci: a key needs a hash; `assay keys new` makes both"),
        ('[auth.keys.ci]\nhash = "assay_5555"', "which `assay keys hash` prints, not the key itself"),
        (f'[auth.keys.ci]\nhash = "{HASH[:-1]}"', 'auth.keys.ci.hash: expected "sha256:" and 64 hexadecimal digits'),
        ('[auth.keys]\nci = "assay_5555"', "auth.keys.ci: expected a table, found a string"),
        (f'[auth.keys."a\\tb"]\nhash = "{HASH}"', "the name of a key must be 1 to 64 printable characters"),
        (
            f'[auth.keys.a]\nhash = "{HASH}"\n[auth.keys.b]\nhash = "{HASH[:7]}{HASH[7:].upper()}"',
            "[auth]: the keys a and b have the same hash",
        ),
        ('[auth.keys.ci]\nhsah = "5555"', "auth.keys.ci.hsah: unknown key; did you mean hash?"),
        ('[auth.keys.ci]\nzzz = "x"', "auth.keys.ci.zzz: unknown key; known keys: expires, hash, tier"),
        (f'[auth.keys.ci]\nhash = "{HASH}"\nexpires = "late"', "expected a date such as 2027-01-01, found the string"),
        (f'[auth.keys.ci]\nhash = "{HASH}"\nexpires = 12:00:00', "expected a date such as 2027-01-01, found the time"),
        ("[auth.kyes.ci]", "auth.kyes: unknown key; did you mean keys?"),
        ('[auth]\nhash = "5555"', "auth.hash: unknown key; did you mean auth.keys.NAME.hash?"),
        ("[auth]\njwt = 1", "auth.jwt: expected a table, found 1"),
        *((f"[auth.keys.ci]\nhash = {each}", "auth.keys.ci.hash: ") for each in ("5555", '["5555"]')),
        *((f"[auth]\nkeys = {each}", "auth.keys: expected a table") for each in ('"5555"', '["5555"]')),
        ('auth = "5555"', "auth: expected a table, found a string"),
        ("[auth.jwt]", "auth.jwt: jwt needs jwks: the file or URL with the public keys that verify tokens"),
        ('[auth.jwt]\njwks = "x"', "jwt needs audience: the aud that tokens must have, such as the URL of this server"),
        ('[auth.jwt]\njwks = "http://a.example"', f"{NO_HTTPS}: over http the keys"),
        ('[auth.jwt]\njwks = "http://127.0.0.1.a.example"', NO_HTTPS),
        ('[auth.jwt]\njwks = "http://localhost.a.example"', NO_HTTPS),
        ('[auth.jwt]\njwks = "https://u:5555@a.example"', "auth.jwt.jwks: jwks must not have a user name or password"),
        ('[auth.jwt]\njwks = "ftp://a.example"', "auth.jwt.jwks: jwks must be a file or an https URL"),
        ('[auth.jwt]\njwks = "https://"', "auth.jwt.jwks: jwks must be a file or an https URL"),
        ('[auth.jwt]\njwks = "https://[::1"', "auth.jwt.jwks: jwks is not a valid URL"),
        ('[auth.jwt]\njwks = "https://a:99999/"', "auth.jwt.jwks: jwks is not a valid URL"),
        ('[auth.jwt]\nalgorithms = ["HS256"]', ALGORITHMS),
        ('[auth.jwt]\nalgorithms = ["none"]', ALGORITHMS),
        ("[auth.jwt]\nalgorithms = []", "auth.jwt.algorithms: algorithms must name at least one"),
        ("[auth.jwt]\nleeway = 301", "auth.jwt.leeway: leeway must be 0 to 300 seconds"),
        ("[auth.jwt]\nleeway = -1", "auth.jwt.leeway: leeway must be 0 to 300 seconds"),
        ('[auth.jwt]\nrequired_scopes = ["a b"]', "auth.jwt.required_scopes: a scope must be ASCII"),
        ("[auth.jwt]\nrequired_scopes = ['a\"']", "auth.jwt.required_scopes: a scope must be ASCII"),
        ('[auth.jwt.tiers]\ngold = "por"', "auth.jwt.tiers.gold: expected one of community, pro, enterprise"),
    ],
)
def test_a_slip_about_who_may_come_in_stops_everything(tmp_path: Path, toml: str, line: str) -> None:
    """An empty section, too: who removes the last key does not mean to open the door."""
    said = objection(tmp_path, toml)
    assert line in said
    assert "5555" not in said, "a secret in the wrong place"
    (tmp_path / "assay.toml").unlink()
    assert "5555" not in objection(tmp_path, "", "auth.keys.ci=5555")


@rows("host", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "LOCALHOST"])
def test_keys_may_come_over_http_from_this_machine(tmp_path: Path, host: str) -> None:
    toml = f'[auth.jwt]\njwks = "http://{host}:8080/keys"\naudience = ["x"]'
    assert loaded(tmp_path, toml).auth == Auth(jwt=Jwt(jwks=f"http://{host}:8080/keys", audience=("x",)))


def test_the_section_says_who_may_come_in(tmp_path: Path) -> None:
    toml = (
        f'[auth.keys.ci]\nhash = "{HASH}"\ntier = "pro"\nexpires = 2027-01-01\n'
        '[auth.jwt]\njwks = "keys.json"\naudience = []\n[auth.jwt.tiers]\ngold = "pro"\n'
    )
    flag = f"auth.keys.other.hash={HASH.replace('0', '1')}"
    assert loaded(tmp_path, toml, flag, ASSAY_AUTH_JWT_LEEWAY="5").auth == Auth(
        {"ci": ApiKey(HASH, "pro", "2027-01-01T00:00:00"), "other": ApiKey(HASH.replace("0", "1"))},
        Jwt("keys.json", (), tiers={"gold": "pro"}, leeway=5),
    )


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_setting_is_on_the_page_with_its_default() -> None:
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    for key in keys().values():
        default, doc = described(key)
        assert doc, key.path
        [row] = [row for row in rows if f"`{'.'.join(key.path)}`" in row[0]]
        assert type(default) not in (int, float) or row[1] == f"{default:,}"


def test_every_sample_on_the_page_is_read(tmp_path: Path) -> None:
    samples = [part.partition("```")[0] for part in PAGE.split("```toml\n")[1:]]
    assert len(samples) >= 2
    for sample in samples:
        name = "pyproject.toml" if "tool" in tomllib.loads(sample) else "assay.toml"
        (tmp_path / name).write_text(sample)
        assert load({}, tmp_path, file=name) != Settings()


# ── what commands make of it ─────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("flags", "longest"),
    [
        ((), 16 << 20),
        (("limits.frame_bytes=1000",), 1000),
        (("guard.frame_bytes=2000",), 2000),
        (("limits.frame_bytes=1000", "guard.frame_bytes=2000"), 2000),
        (("limits.frame_bytes=3000", "guard.frame_bytes=2000"), 2000),
    ],
)
def test_the_limit_of_a_guard_wins_over_that_of_all(tmp_path: Path, flags: tuple[str, ...], longest: int) -> None:
    assert loaded(tmp_path, "", *flags).guard_limits.frame_bytes == longest


@rows(
    ("flags", "limits"),
    [
        ((), Limits(frame_bytes=1 << 20)),
        (("limits.depth=9",), Limits(frame_bytes=1 << 20, depth=9)),
        (("limits.frame_bytes=16777216",), Limits()),
    ],
)
def test_a_command_may_have_limits_of_its_own_where_nothing_is_set(
    tmp_path: Path, flags: tuple[str, ...], limits: Limits
) -> None:
    """specs/001: our own server takes 1 MiB, also where other settings are given."""
    assert load({}, tmp_path, flags=flags, limits=REQUESTS).limits == limits


@rows(
    ("options", "line"),
    [
        ((), "assay: assay.toml: limits.dept: unknown key; did you mean depth?\n"),
        (("--config", "nope.toml"), "assay: --config nope.toml: No such file or directory\n"),
        (("--config", os.devnull, "--set", "tiers.tier=gold"), "assay: --set tiers.tier: expected one of community, "),
        (("--examples", "nowhere"), "argument --examples: nowhere: no such directory"),
    ],
)
def test_a_slip_stops_the_server_before_it_starts(tmp_path: Path, options: tuple[str, ...], line: str) -> None:
    (tmp_path / "assay.toml").write_text("[limits]\ndept = 1")
    done = assay_text("serve", *options, cwd=tmp_path, env=variables_but("ASSAY_", "SYN_"))
    assert (done.returncode, done.stdout) == (2, "")
    assert line in done.stderr
    assert done.stderr.count("\n") == 1 or "--examples" in options
