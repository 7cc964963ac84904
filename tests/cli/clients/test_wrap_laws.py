"""What holds of every configuration, however it is laid out."""

from typing import Any, Literal

from client_laws import SECRET, codex_configurations, configurations
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.clients.dialect import CODEX, GEMINI, JSON, Dialect
from assay.cli.clients.masks import difference, masked
from assay.cli.clients.plan import unwrap
from assay.model.names import cut_name
from kit.client_files import behind
from kit.laws import law

# The same examples on every run and every machine, and never by the clock. `LAWS=20` looks twenty times as long.
Mode = Literal["audit", "enforce"] | None
modes: st.SearchStrategy[Mode] = st.sampled_from((None, "audit", "enforce"))

files: st.SearchStrategy[tuple[str, Dialect]] = st.one_of(
    st.tuples(configurations(), st.sampled_from((JSON, GEMINI))), st.tuples(codex_configurations(), st.just(CODEX))
)


def outside(text: str, dialect: Dialect) -> list[str]:
    """What is before, between and after the entries."""
    edges = [0, *(edge for server in dialect.servers(text) for edge in (server.start, server.end)), len(text)]
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


@law(60)
@given(files, modes)
def test_unwrapping_gives_every_byte_back(file: tuple[str, Dialect], mode: Mode) -> None:
    text, dialect = file
    wrapped = behind(text, mode=mode, dialect=dialect).after
    plan = unwrap(wrapped, text, dialect=dialect)
    assert plan.after.encode() == text.encode()
    assert {change.outcome for change in plan.changes} <= {"restored"}


@law(60)
@given(files, modes)
def test_wrapping_twice_is_wrapping_once(file: tuple[str, Dialect], mode: Mode) -> None:
    text, dialect = file
    wrapped = behind(text, mode=mode, dialect=dialect).after
    again = behind(wrapped, mode=mode, dialect=dialect)
    assert again.after == wrapped
    assert not again.changes


@law(60)
@given(files, modes)
def test_nothing_changes_but_how_servers_are_started(file: tuple[str, Dialect], mode: Mode) -> None:
    text, dialect = file
    plan = behind(text, mode=mode, dialect=dialect)
    assert outside(plan.after, dialect) == outside(text, dialect)
    left = {each.server.name for each in plan.left}
    for before, after in zip(dialect.servers(text), dialect.servers(plan.after), strict=True):
        assert (before.text == after.text) is (before.name in left)
        if before.name not in left:
            one, other = before.value, after.value
            assert _rest(one) == _rest(other)
            assert other["command"] == "/opt/assay/bin/assay"
            options = ["--name", cut_name(before.name), *(["--mode", mode] if mode else [])]
            assert other["args"] == ["guard", *options, *_target(one)]


def _rest(entry: dict[str, Any]) -> list[tuple[str, Any]]:
    started = ("type", "command", "args", "url", "headers")
    return [(name, each) for name, each in entry.items() if name not in started]


def _target(entry: dict[str, Any]) -> list[str]:
    if "command" in entry:
        return ["--", entry["command"], *entry.get("args", [])]
    headers = (("--header", f"{name}: {each}") for name, each in entry.get("headers", {}).items())
    return ["--target", entry["url"], *(word for pair in headers for word in pair)]


@law(60)
@given(files, modes)
def test_without_a_backup_the_servers_are_started_as_before(file: tuple[str, Dialect], mode: Mode) -> None:
    text, dialect = file
    plan = unwrap(behind(text, mode=mode, dialect=dialect).after, None, dialect=dialect)
    assert outside(plan.after, dialect) == outside(text, dialect)
    for before, after in zip(dialect.servers(text), dialect.servers(plan.after), strict=True):
        one, other = before.value, after.value
        if before.text != after.text:
            assert _target(one) == _target(other)
            assert _rest(one) == _rest(other)


@law(60)
@given(
    files,
    st.lists(st.tuples(st.sampled_from(("wrap", "unwrap")), modes, st.booleans(), st.integers(0, 2)), max_size=5),
)
def test_after_any_number_of_changes_every_byte_comes_back(
    file: tuple[str, Dialect], steps: list[tuple[str, Mode, bool, int]]
) -> None:
    """Servers one by one, with several options, in and out: the backup is kept as the command keeps it."""
    text, dialect = file
    backup: str | None = None
    now = text
    can = [each.server.name for each in behind(text, dialect=dialect).changes]
    for step, mode, payloads, which in steps:
        names = can[which : which + 1]
        if step == "wrap":
            before = unwrap(now, backup, dialect=dialect).after
            now, backup = behind(now, names, mode, payloads=payloads, dialect=dialect).after, before
            assert backup == text
        else:
            now = unwrap(now, backup, names, dialect).after
    assert unwrap(now, backup, dialect=dialect).after == text


@law(60)
@given(files, modes)
def test_no_secret_is_shown(file: tuple[str, Dialect], mode: Mode) -> None:
    text, dialect = file
    wrapped = behind(text, mode=mode, dialect=dialect).after
    for shown in (masked(text, dialect), masked(wrapped, dialect), *difference(text, wrapped, "mcp.json", dialect)):
        assert SECRET not in shown
    names = [[server.name for server in dialect.servers(each)] for each in (masked(wrapped, dialect), wrapped)]
    assert names[0] == names[1]
