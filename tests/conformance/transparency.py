"""
The official conformance suite against the fixture server, once directly and once through the guard, side by side.

    transparency.py [PYTHON]    PYTHON has the official SDK; without it, that of .venvs/sdk

Exit status: 0 the guard changes nothing, 1 it does, 2 the suite could not be run.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence

from suite import HERE, ROOT, CannotRun, Row, expected_in, run, served, suite_command

SDK = ROOT / ".venvs" / "sdk" / "bin" / "python"
EXPECTED = HERE / "fixture_server.toml"


def direct(python: str) -> list[str]:
    """What starts the fixture server."""
    return [python, str(HERE / "fixture_server.py"), "--http", "127.0.0.1:0"]


def guarded(python: str, *options: str) -> list[str]:
    """What starts the same server behind the guard."""
    return [sys.executable, str(HERE / "guarded_server.py"), python, *options]


def rows(command: Sequence[str]) -> list[Row]:
    """What the suite finds at the server that *command* starts."""
    with served(command) as url:
        return run(url, expected_in(EXPECTED))


def table(one: Iterable[Row], other: Iterable[Row]) -> Iterator[str]:
    """Each scenario with the checks that pass, directly and through the guard."""
    yield f"{'scenario':<46} {'revision':<10} {'direct':>8} {'guarded':>8}"
    behind = {(each.scenario, each.revision): each for each in other}
    for each in one:
        guard = behind.get((each.scenario, each.revision))
        yield f"{each.scenario:<46} {each.revision:<10} {shown(each):>8} {shown(guard):>8}"


def shown(row: Row | None) -> str:
    if row is None or row.found is None:
        return "-"
    return f"{row.found.passed}/{row.found.passed + len(row.found.others)}"


def passing(found: Iterable[Row]) -> int:
    """How many scenarios pass."""
    return sum(each.found is not None and not each.found.checks for each in found)


def main(python: str) -> int:
    """Run both and print the table; the exit status."""
    try:
        suite_command()
        one, other = rows(direct(python)), rows(guarded(python, "--mode", "enforce"))
    except CannotRun as why:
        print(why, file=sys.stderr)
        return 2
    print(*table(one, other), sep="\n")
    print(f"\n{len(one)} scenarios: {passing(one)} pass directly, {passing(other)} through the guard")
    return 1 if any(each.differences for each in (*one, *other)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else str(SDK)))
