"""Conversations by chance through real guards of every pairing: `check` finds in the recording what the guard found."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from exchanges import sessions
from pairings import PAIRINGS, Pairing
from test_guard_random import one

from assay.cli.main import main
from assay.records.journal.record import session_digest
from kit import journals

EXCHANGES = 25


STATUSES: dict[Path, int] = {}
"""The exit status of the guard that ran in a directory."""


def recorded(kind: type[Pairing]) -> type[Pairing]:
    """*kind* with a recording, and a journal, whose verdicts are those of the guard."""

    class Recorded(kind):  # type: ignore[misc, valid-type]  # the base is any pairing
        @property
        def options(self) -> list[str]:
            """Those of the guard."""
            kept = ["--journal", "journal", "--record", "session.jsonl", "--set", "guard.record_secrets=true"]
            return ["--mode", self.mode, "--quiet", "--set", "guard.flights=off", "--fail-on", "refuse", *kept]

        def stop(self) -> int:
            """As without --fail-on; the real status is kept."""
            STATUSES[self.place] = status = super().stop()
            return 0 if status == 4 else status

    return Recorded


RESTARTS = {session_digest(f"restart {number}") for number in range(1, 10)}
"""The handshakes that the guard repeats: they are no part of the client's conversation, and not in its recording."""


def found_by_guard(place: Path) -> Counter[Any]:
    """What the journal says of each message."""
    found: Counter[Any] = Counter()
    for record in journals.records(place / "journal"):
        metadata, error = record["metadata"], record["error"] or {}
        if metadata.get("session") not in RESTARTS:
            found[shown(metadata, record["method"], error.get("violations", ()))] += metadata.get("repeated", 1)
    return found


def found_by_check(place: Path, capsys: pytest.CaptureFixture[str]) -> Counter[Any]:
    """What `assay check` says of each message of the recording."""
    status = main(["check", "--messages", "--format", "ndjson", str(place / "session.jsonl")])
    out, errors = capsys.readouterr()
    assert errors == ""
    assert status in {0, 1}
    records = [json.loads(line) for line in out.splitlines()]
    return Counter(shown(each, each["method"], each["violations"]) for each in records)


def shown(row: dict[str, Any], method: str | None, violations: list[dict[str, Any]]) -> Any:
    """What has to be the same."""
    wrong = tuple((each["rule"], each["at"], each.get("action"), each["found"]) for each in violations)
    # The journal knows the method of more answers than a verdict does.
    return row["party"], row["kind"], row["tool"], row["revision"], method if wrong else None, wrong


@pytest.mark.parametrize("kind", PAIRINGS, ids=lambda kind: str(kind.name))
def test_check_finds_in_a_recording_what_the_guard_found(
    tmp_path: Path, kind: type[Pairing], capsys: pytest.CaptureFixture[str]
) -> None:
    for number, told in enumerate(sessions(EXCHANGES, "recording")):
        place = tmp_path / str(number)
        one(place, told, recorded(kind))
        guard, check = found_by_guard(place), found_by_check(place, capsys)
        assert guard - check == Counter(), "the guard found more"
        assert check - guard == Counter(), "check found more"
        assert sum(guard.values()) > 0
        refused = main(["check", "--fail-on", "refuse", str(place / "session.jsonl")])
        capsys.readouterr()
        # A server that was killed has precedence over what was found.
        assert STATUSES[place] == (4 if refused else 0) or (STATUSES[place], told.killed_after is None) == (3, False)
