"""What holds of every configuration, however it is laid out."""

import os
from typing import Any, Literal

from client_laws import SECRET, configurations
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.clients.entries import servers
from assay.clients.jsonc import plain, read
from assay.clients.masks import difference, masked
from assay.clients.plan import unwrap, wrap

PROGRAM = '"/opt/assay/bin/assay"'

# The same examples on every run and every machine, and never by the clock. `ASSAY_LAWS=20` looks twenty times as long.
law = settings(
    max_examples=60 * int(os.environ.get("ASSAY_LAWS", "1")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)

Mode = Literal["audit", "enforce"] | None
modes: st.SearchStrategy[Mode] = st.sampled_from((None, "audit", "enforce"))


def value(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = plain(read(text).root)
    return parsed


def outside(text: str) -> list[str]:
    """What is before, between and after the entries."""
    edges = [0, *(edge for server in servers(text) for edge in (server.start, server.end)), len(text)]
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


@law
@given(configurations(), modes)
def test_unwrapping_gives_every_byte_back(text: str, mode: Mode) -> None:
    behind = wrap(text, None, (), PROGRAM, mode).after
    assert unwrap(behind, text).after.encode() == text.encode()


@law
@given(configurations(), modes)
def test_wrapping_twice_is_wrapping_once(text: str, mode: Mode) -> None:
    behind = wrap(text, None, (), PROGRAM, mode).after
    for backup in (None, text):
        again = wrap(behind, backup, (), PROGRAM, mode)
        assert again.after == behind
        assert not again.changes


@law
@given(configurations(), modes)
def test_nothing_changes_but_how_servers_are_started(text: str, mode: Mode) -> None:
    plan = wrap(text, None, (), PROGRAM, mode)
    assert outside(plan.after) == outside(text)
    left = {each.server.name for each in plan.left}
    for before, after in zip(servers(text), servers(plan.after), strict=True):
        assert (before.text == after.text) is (before.name in left)
        if before.name not in left:
            one, other = value(before.text), value(after.text)
            assert _rest(one) == _rest(other)
            assert other["command"] == "/opt/assay/bin/assay"
            assert other["args"] == ["guard", *(["--mode", mode] if mode else []), *_target(one)]


def _rest(entry: dict[str, Any]) -> list[tuple[str, Any]]:
    started = ("type", "command", "args", "url", "headers")
    return [(name, each) for name, each in entry.items() if name not in started]


def _target(entry: dict[str, Any]) -> list[str]:
    if "command" in entry:
        return ["--", entry["command"], *entry.get("args", [])]
    headers = (("--header", f"{name}: {each}") for name, each in entry.get("headers", {}).items())
    return ["--target", entry["url"], *(word for pair in headers for word in pair)]


@law
@given(configurations(), modes)
def test_without_a_backup_the_servers_are_started_as_before(text: str, mode: Mode) -> None:
    plan = unwrap(wrap(text, None, (), PROGRAM, mode).after, None)
    assert outside(plan.after) == outside(text)
    for before, after in zip(servers(text), servers(plan.after), strict=True):
        one, other = value(before.text), value(after.text)
        if before.text != after.text:
            assert _target(one) == _target(other)
            assert _rest(one) == _rest(other)


@law
@given(configurations(), st.lists(st.tuples(st.sampled_from(("wrap", "unwrap")), modes, st.integers(0, 2)), max_size=5))
def test_after_any_number_of_changes_every_byte_comes_back(text: str, steps: list[tuple[str, Mode, int]]) -> None:
    """Servers one by one, with several modes, in and out: the backup is kept as the command keeps it."""
    backup: str | None = None
    now = text
    for step, mode, which in steps:
        can = [each.server.name for each in wrap(text, None, (), PROGRAM, None).changes]
        names = can[which : which + 1]
        if step == "wrap":
            now, backup = wrap(now, backup, names, PROGRAM, mode).after, unwrap(now, backup).after
            assert backup == text
        else:
            now = unwrap(now, backup, names).after
    assert unwrap(now, backup).after == text


@law
@given(configurations(), modes)
def test_no_secret_is_shown(text: str, mode: Mode) -> None:
    behind = wrap(text, None, (), PROGRAM, mode).after
    for shown in (masked(text), masked(behind), *difference(text, behind, "mcp.json")):
        assert SECRET not in shown
    assert [server.name for server in servers(masked(behind))] == [server.name for server in servers(behind)]
