"""
A file of a stranger never weakens the guard: whatever it sets, up or down.

The law: a message that is refused without the file is refused with it, and one that is reported is reported or refused.
It is tried for every field there is, so that a new field is tried without a line here.
"""

from collections.abc import Iterator, Mapping
from json import dumps
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assay.judge.conversation import Conversation
from assay.model.limits import DEFAULT
from assay.model.verdict import Party
from assay.rules import RULES
from assay.rules.policy import REPAIRABLE, fitting
from assay.settings import Settings, SettingsError, load, load_cautiously
from assay.settings.fields import ANY, EACH, KINDS, Key, changed
from assay.settings.loading import keys
from assay.settings.policy_settings import policy
from kit.parties import CLIENT, SERVER, frame, notification, request, result
from kit.rows import rows

ROWS = {each.path: each for each in keys().values()}
TODAY = "2026-01-01"

# ── every field, with values in both directions ──────────────────────────────────────────────────────────────────────

EXCEPTION = '[[guard.exceptions]]\nrule = "{}"\naction = "{}"\nreason = "x"\nuntil = 2099-01-01\n{}'
AUTH = f'[auth]\nconsole = ["ci"]\n[auth.keys.ci]\nhash = "sha256:{"0a" * 32}"\ntier = "pro"\nexpires = 2099-01-01\n'
JWT = """\
[auth.jwt]
jwks = "keys.json"
audience = []
issuer = "https://a.example"
algorithms = ["RS256"]
required_scopes = ["a"]
principal_claim = "name"
tier_claim = "plan"
leeway = 300
require_exp = false
tiers = { gold = "pro" }
"""
EXCEPTED = ("contract/input", "contract/output", "contract/schema", "protocol/params", "protocol/progress", "*")


def tables() -> Iterator[str]:
    """Tables with names of their own, which cannot be made from the type of a field."""
    yield from (AUTH, JWT)
    for rule in (*RULES, "contract/*", "protocol/*", "*"):
        fit = fitting(rule) if rule in RULES else ("pass", "refuse", "quarantine")
        for action in fit:
            yield f'[guard.policy]\n"{rule}" = "{action}"\n'
            if rule in EXCEPTED:
                yield EXCEPTION.format(rule, action, "")
                yield EXCEPTION.format(rule, action, 'tool = "search"\n')
    for rule in REPAIRABLE:
        for repair in ("true", "false"):
            yield f'[guard.policy]\n"{rule}" = {{ action = "refuse", repair = {repair} }}\n'
    yield '[telemetry.headers]\nx-key = "k"\n'
    # Valid only beside another.
    yield '[upstream]\ncertificate = "a.pem"\nkey = "b.pem"\n'


def singles(path: tuple[str, ...], setting: Key) -> Iterator[str]:
    """The file with this setting alone, for values on both sides of its default."""
    *above, key = path
    for value in values(setting, default(path)):
        text = dumps(value)
        yield f"[{'.'.join(above)}]\n{key} = {text}\n"


def values(setting: Key, usual: Any) -> Iterator[Any]:
    if setting.kind is KINDS[bool]:
        yield from (True, False)
    elif setting.kind in (KINDS[int], KINDS[float]):
        number = DEFAULT.frame_bytes if usual is None else usual
        of = float if setting.kind is KINDS[float] else int
        yield from map(of, (0, 1, 2, 5, number // 10, number // 2, number - 1, number + 1, number * 2, number * 1000))
    elif setting.kind is KINDS[tuple[str, ...]]:
        yield from ([], ["x"], ["*"], ["https://x.example"])
    else:
        yield from setting.words or ("x", "off", "auto", "https://x.example")


def default(path: tuple[str, ...]) -> Any:
    value: Any = Settings()
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
    return value


def files() -> Iterator[str]:
    for path, setting in ROWS.items():
        if ANY not in path and EACH not in path and path[0] != "auth":
            yield from singles(path, setting)
    yield from tables()


class Tried(NamedTuple):
    """What a file sets, if it is believed, and what of it counts."""

    toml: str
    believed: Settings
    admitted: Settings
    log: list[str]


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> list[Tried]:
    """Every file that is valid and sets anything."""
    directory = tmp_path_factory.mktemp("stranger")
    (directory / "jobs.json").write_text('{"$defs": {"Run": {}, "Done": {}}}')
    found = []
    for toml in files():
        (directory / "assay.toml").write_text(toml)
        try:
            believed = load({}, directory, file=str(directory / "assay.toml"))
        except SettingsError:
            continue
        log: list[str] = []
        if believed != Settings():
            found.append(Tried(toml, believed, load_cautiously({}, directory, log=log.append).settings, log))
    return found


def at(settings: Any, path: tuple[str, ...]) -> Any:
    """The value at *path*; all that is below a name that the file has chosen."""
    for part in path:
        if part in (ANY, EACH):
            return settings
        settings = settings.get(part) if isinstance(settings, Mapping) else getattr(settings, part, None)
    return settings


def test_every_field_is_tried_and_numbers_on_both_sides(tried: list[Tried]) -> None:
    usual = Settings()
    for path, setting in ROWS.items():
        believed = [value for each in tried if (value := at(each.believed, path)) != at(usual, path)]
        assert believed, path
        number = at(usual, path)
        if setting.kind in (KINDS[int], KINDS[float]) and type(number) in (int, float):
            assert min(believed) < number < max(believed), path


def test_only_a_field_that_says_so_counts_in_a_file_that_is_found(tried: list[Tried]) -> None:
    usual = Settings()
    for each in tried:
        for path, setting in ROWS.items():
            if setting.weaker is changed:
                assert at(each.admitted, path) == at(usual, path), each.toml


def test_a_setting_that_does_not_count_is_named(tried: list[Tried]) -> None:
    for each in tried:
        if each.admitted != each.believed:
            assert " ignored: this assay.toml is not trusted yet; run assay trust " in each.log[-1]
            section = each.toml.lstrip("[").partition("]")[0].partition(".")[0]
            assert each.log[-1].lstrip("[").startswith(section)


# ── hostile parties ──────────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "page": {"type": "object", "properties": {"size": {"type": "integer"}}},
    },
    "required": ["query"],
    "additionalProperties": False,
}
OUTPUT = {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]}
TOOLS = [
    {"name": "search", "inputSchema": SCHEMA, "outputSchema": OUTPUT},
    {"name": "get", "inputSchema": SCHEMA, "description": "x" * 3_000},
    {"name": "odd", "inputSchema": {"type": "no such type"}},
]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
WELCOME = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "s", "version": "1"},
}


def called(ident: Any, name: str, arguments: Any) -> tuple[Party, bytes]:
    return CLIENT, frame(request(ident, "tools/call", {"name": name, "arguments": arguments}))


def answered(ident: Any, **value: Any) -> tuple[Party, bytes]:
    return SERVER, frame(result(ident, value))


def listing(ident: Any, **params: Any) -> tuple[Party, bytes]:
    return CLIENT, frame(request(ident, "tools/list", params))


GOOD_LIST = answered(1, tools=TOOLS[:2])
LISTS = {
    "good": GOOD_LIST,
    "with a tool that has a bad schema": answered(1, tools=TOOLS),
    "with a tool twice": answered(1, tools=[*TOOLS[:2], TOOLS[1]]),
    "with an unknown member of a tool": answered(1, tools=[*TOOLS[:2], {**TOOLS[0], "name": "z", "title": 5}]),
    "with a cursor": answered(1, tools=TOOLS[:2], nextCursor="x" * 100),
}

HOSTILE: list[tuple[Party, bytes]] = [
    called(2, "search", {}),
    called(3, "search", {"query": 5}),
    called(4, "search", {"query": "x", "page": {"size": "ten"}}),
    called(5, "get", {"query": "x", "more": 1}),
    called(6, "odd", {}),
    called(7, "search", {"query": "x"}),
    answered(7, content=[], structuredContent={"hits": "none"}),
    called(8, "search", {"query": "x"}),
    answered(8, content=[{"type": "text"}]),
    answered(8, content=[]),
    answered(99, content=[]),
    (SERVER, b"listening on port 8080"),
    (SERVER, b'{"jsonrpc":"2.0","id":9,"result":{},"result":{}}'),
    (CLIENT, b'{"jsonrpc":"2.0","id":10,"method":"ping","params":{},"params":{}}'),
    (CLIENT, frame(request("x" * 2000, "ping"))),
    (CLIENT, frame(request(11, "tools/call", {"name": "search", "arguments": {"query": [[[[[[[[1]]]]]]]]}}))),
    (CLIENT, b"[" * 200 + b"]" * 200),
    (CLIENT, frame(request(12, "no/such"))),
    (SERVER, frame(notification("notifications/progress", {"progressToken": "none", "progress": 1}))),
    (SERVER, frame(notification("notifications/tools/list_changed", {"x": 1}))),
    called(13, "search", {"query": 5}),
]

PROLOGUES: Mapping[str, list[tuple[Party, bytes]]] = {
    name: [
        (CLIENT, frame(request(0, "initialize", HELLO))),
        answered(0, **WELCOME),
        (CLIENT, frame(notification("notifications/initialized"))),
        listing(1),
        tools,
    ]
    for name, tools in LISTS.items()
}


def fates(settings: Settings, frames: list[tuple[Party, bytes]], mode: str | None = None) -> list[str]:
    """What becomes of each frame: refused, reported or accepted."""
    guard = settings.guard
    wanted = mode or guard.mode
    conversation = Conversation(
        mode="enforce" if wanted == "enforce" else "audit", limits=settings.guard_limits, policy=policy(guard, TODAY)
    )
    found = []
    for party, each in frames:
        verdict = conversation.hear(party, each)
        stopped = wanted == "enforce" and verdict.onward is None
        found.append("refused" if stopped else "reported" if verdict.violations else "accepted")
    return found


STRICT = ("accepted", "reported", "refused")


def weaker(base: list[str], mine: list[str]) -> list[int]:
    """The frames that pass with less than by default."""
    return [
        at for at, (one, other) in enumerate(zip(base, mine, strict=True)) if STRICT.index(one) > STRICT.index(other)
    ]


@rows("prologue, mode", [*((each, "enforce") for each in PROLOGUES), ("good", None)])
def test_no_message_passes_because_of_a_file_that_is_found(tried: list[Tried], prologue: str, mode: str | None) -> None:
    frames = [*PROLOGUES[prologue], *HOSTILE]
    usual = Settings()
    # Of a guard without files and listeners, these decide.
    counting = [each for each in tried if (each.admitted.guard, each.admitted.limits) != (usual.guard, usual.limits)]
    assert len(counting) > 50
    base = fates(usual, frames, mode)
    for each in counting:
        assert weaker(base, fates(each.admitted, frames, mode)) == [], each.toml


OPERATOR = ("rule=*", "action=refuse", "reason=x", "until=2099-01-01")


@rows(
    "flags",
    [
        ("guard.policy.*=refuse",),
        ("guard.policy.contract/input=refuse", "guard.policy.contract/*.repair=false"),
        ("guard.strict=true", "guard.repair=false"),
        # The first exception of the file has the same number.
        tuple(f"guard.exceptions.1.{each}" for each in OPERATOR),
    ],
)
def test_no_option_counts_less_because_of_a_file_that_is_found(tmp_path: Path, flags: tuple[str, ...]) -> None:
    frames = [*PROLOGUES["good"], *HOSTILE]
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    base = fates(load_cautiously(environ, tmp_path, flags=flags).settings, frames, "enforce")
    for toml in (each for each in tables() if any(f'"{rule}"' in each for rule in EXCEPTED)):
        (tmp_path / "assay.toml").write_text(toml)
        found = load_cautiously(environ, tmp_path, flags=flags).settings
        assert weaker(base, fates(found, frames, "enforce")) == [], toml


@rows("toml", ["tools = 1", "contract_bytes = 1", "depth = 5", "frame_bytes = 2000", "values = 50"])
def test_a_lower_limit_would_switch_off_judging_by_contract(tmp_path: Path, toml: str) -> None:
    """Why every limit counts only if it is trusted, and that the messages above would show it."""
    (tmp_path / "assay.toml").write_text(f"[limits]\n{toml}\n")
    believed = load({}, tmp_path, file=str(tmp_path / "assay.toml"))
    frames = [*PROLOGUES["good"], *HOSTILE]
    base = fates(Settings(), frames, "enforce")
    assert weaker(base, fates(believed, frames, "enforce"))
    assert weaker(base, fates(load_cautiously({}, tmp_path).settings, frames, "enforce")) == []
