"""
A table of exchanges through real guards, over every pair of transports and in both modes.

It pins what the client gets, what reaches the server and what is in the journal. All rows of a revision share one
guard: each row waits for what is expected of it, and whatever else comes is counted for a later row, or at the end.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from endings import ENDINGS, Ending, Ends
from exchange_rows import HANDSHAKE, HANDSHAKE_ROWS, STATELESS, STATELESS_ROWS, Row
from pairings import PAIRINGS, Pairing
from table_run import EndingRun, TableRun

KINDS = pytest.mark.parametrize("kind", PAIRINGS, ids=lambda kind: str(kind.name))


@KINDS
@pytest.mark.parametrize("mode", ["enforce", "audit"])
@pytest.mark.parametrize(("revision", "rows"), [(HANDSHAKE, HANDSHAKE_ROWS), (STATELESS, STATELESS_ROWS)])
def test_every_exchange_comes_to_what_the_table_says(
    tmp_path: Path, kind: type[Pairing], mode: str, revision: str, rows: Sequence[Row]
) -> None:
    rows = [row for row in rows if mode == "enforce" or row.audit is not None]
    run = TableRun(kind, tmp_path, revision, mode)
    run.carry_out(rows)
    expected = {row.name: row.expected(kind.name, mode) for row in rows}
    order = list if run.pairing.in_order else lambda items: sorted(items, key=str)
    assert {name: order(got) for name, got in run.gets.items()} == {
        name: order(each.gets) for name, each in expected.items()
    }
    assert {row.name: run.reached(row) for row in rows} == {name: each.reaches for name, each in expected.items()}
    assert run.own() == sorted(line for each in expected.values() for line in each.back)
    assert run.found() == sorted(line for each in expected.values() for line in each.found)
    assert "Traceback" not in (tmp_path / "log").read_text()


@KINDS
@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: str(ending.name))
def test_every_ending_comes_to_what_the_table_says(tmp_path: Path, kind: type[Pairing], ending: Ending) -> None:
    run = EndingRun(kind, tmp_path, HANDSHAKE, ending.mode, timeout=ending.timeout)
    got = run.end(ending)
    expected: Ends = ending.expected(kind.name)
    got = got if expected.server is not None else got._replace(server=None)
    assert got == expected, json.dumps(got)
    assert "Traceback" not in (tmp_path / "log").read_text()
