"""Records that are made to break a console: one that cannot be shown takes nothing else away."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import pytest
from app_clients import ServedConsole
from test_console_state import fed, record

from assay.console.access import ApiError
from assay.console.app import dumped
from assay.console.message import message_answer
from assay.console.rows import RowStore
from assay.console.sources import FilePump
from assay.console.state import ConsoleState
from assay.records.record import Record, read_line, written_record
from kit.rows import rows


def deep(levels: int) -> Any:
    """Return an object in so many others."""
    return json.loads('{"a":' * levels + "{}" + "}" * levels)


def listed(*tools: dict[str, Any], **result: Any) -> Record:
    """Return the record of a list of tools."""
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools, **result}})
    return record(1, party="server", kind="result", method="tools/list", frame=frame)


@rows("levels", [100, 243, 250, 400, 900])
def test_a_tool_of_many_levels_hides_no_other(levels: int) -> None:
    state = fed(ConsoleState(), iter([listed({"name": "deep", "inputSchema": deep(levels)}, {"name": "good"})]))
    [facts] = state.servers
    answer = orjson.loads(dumped({"contracts": [state.contract(facts)]}))
    first, second = answer["contracts"][0]["lists"][0]["entries"]
    assert (first["name"], second["definition"]) == ("deep", {"name": "good"})
    assert any("nested too deeply" in each for each in first["why"]) == (levels >= 250)


def test_a_changed_message_of_many_levels_is_still_an_answer() -> None:
    change = {"op": "replace", "path": "/id", "value": 2}
    made = listed({"name": "deep", "inputSchema": deep(400)})
    made.metadata.repairs = [change]
    found = message_answer(fed(ConsoleState(), iter([made])), 1)
    assert found is not None
    assert (found["delivered"]["text"], found["delivered"]["why"]) == (None, "the message is nested too deeply")
    with pytest.raises(ApiError, match="nested too deeply"):
        dumped(deep(400))


@rows(
    "changes",
    [
        {"repairs": 5},
        {"status": "reported", "error": {"quarantined": 5, "violations": 5}},
        {"status": "reported", "error": {"quarantined": [{"name": ["x"]}]}},
        {"status": "refused", "error": {"violations": [{"rule": {}}]}},
        {"kind": ["request"]},
        {"party": []},
        {"party": "other"},
        {"repeated": "many"},
        {"metadata": 5},
    ],
)
def test_a_line_with_a_member_of_another_type_is_no_record(changes: dict[str, Any]) -> None:
    whole = json.loads(written_record(record()))
    for name, value in changes.items():
        (whole if name in whole else whole["metadata"])[name] = value
    assert read_line(json.dumps(whole).encode()) is None


def test_members_of_any_length_are_cut() -> None:
    long = dict.fromkeys(("method", "tool", "session", "revision", "id"), "x" * 100_000)
    state = fed(ConsoleState(), iter([record(1, inputBytes=10**18, **long)]))
    assert message_answer(state, 1) is not None
    assert len(orjson.dumps(state.store.row(1))) < 2_000


class Lines:
    """A file of records that a program made up."""

    def __init__(self, found: list[Record]) -> None:
        self._found = found

    def records(self) -> Iterator[Record]:
        """Yield them."""
        yield from self._found

    def notes(self) -> Iterable[str]:
        """Return nothing."""
        return ()


def test_a_record_that_cannot_be_shown_stops_no_other() -> None:
    odd = record(2)
    odd.ts = None  # type: ignore[assignment]  # what no reader makes
    state = ConsoleState()
    made = [record(1), odd, record(4)]
    asyncio.run(FilePump(state, lambda: None, {"x": Lines(made)}).run())
    assert [row["id"] for row in _rows(state)] == [1, 4]
    assert (state.loading, state.failed) == ([], [])


def _rows(state: ConsoleState) -> list[dict[str, Any]]:
    return [{"id": orjson.loads(each)[8]} for each in state.store.after(0)]


def test_rows_with_long_places_are_bounded_by_their_bytes() -> None:
    store = RowStore(most_rows=1_000, most_row_bytes=10_000)
    for number in range(1, 101):
        assert store.add([number, "x" * 990], b"record", 0) == number
        assert sum(map(len, store.after(0))) <= 10_000
    assert store.newest == 100
    assert store.dropped_rows == store.oldest - 1 > 80
    assert store.row(100) == [100, "x" * 990]
    assert store.add([101, "y" * 20_000], b"record", 0) == 101
    assert len(store.after(0)) == 1


def test_a_list_without_an_end_is_bounded() -> None:
    page = 1 << 20
    pages = (listed({"name": f"t{each}", "description": "x" * page}, nextCursor="more") for each in range(20))
    state = fed(ConsoleState(), pages)
    facts = state.server(1)
    assert facts is not None
    found = state.contract(facts)["lists"][0]
    assert 0 < sum(len(each["definition"]["description"]) for each in found["entries"]) <= 8 << 20
    fed(state, iter([listed({"name": "last"})]))
    assert not state.contract(facts)["lists"][0]["complete"]
    # The next list is whole again.
    fed(state, iter([listed({"name": "good"})]))
    again = state.contract(facts)["lists"][0]
    assert (again["complete"], [each["name"] for each in again["entries"]]) == (True, ["good"])


def test_a_fault_of_the_console_is_an_answer_and_a_line_of_its_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    served = ServedConsole(ConsoleState())
    monkeypatch.setattr(ConsoleState, "server_answers", lambda *_: 1 // 0)
    found = served.http.get("api/state")
    assert (found.status_code, found.json()["error"]["code"]) == (500, "bug")
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "ZeroDivisionError" in caplog.text
