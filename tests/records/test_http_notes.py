"""The HTTP exchange in records with payloads: what is written of a head, and when its records are made."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay.guard.connection_name import ConnectionName
from assay.judge.headers import encode
from assay.records.http_notes import HttpNotes
from assay.records.journal import Journal
from assay.records.sinks import JournalSink
from kit.records import open_journal
from kit.rows import rows
from kit.talk import SEARCH, Talk, call


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A journal with payloads."""
    opened = open_journal(tmp_path, payloads=True)
    yield opened
    opened.close()


def noted(journal: Journal, headers: dict[bytes, bytes], status: int | None = None) -> list[dict[str, Any]]:
    """The records of a call and its answer, whose request has *headers*."""
    notes = HttpNotes("/mcp")
    sink = JournalSink(journal, "http", "/mcp", http=notes)
    talk = Talk().opened().listed(SEARCH)
    note = notes.begin("POST", headers)
    asked = talk.client(call(5, "search", {"words": "a"}))
    sink.passed(asked, 0.0, ConnectionName("s", "alice"))
    assert not sink.held
    notes.end(status)
    assert len(sink.held) == 1
    note.status = 200
    assert asked.exchange is not None
    sink.passed(talk.conversation.vouch(asked.exchange, b"{}"), 0.0, ConnectionName("s", "alice"))
    return [orjson.loads(line) for line in sink.held]


def test_a_record_has_the_request_and_the_answer_the_status(journal: Journal) -> None:
    asked, answered = (each["metadata"]["http"] for each in noted(journal, {b"accept": b"*/*"}, 202))
    assert asked == {"method": "POST", "path": "/mcp", "status": 202, "headers": {"Accept": "*/*"}}
    assert answered == {"status": 200}


def test_only_known_headers_have_values(journal: Journal) -> None:
    secret = b"ghp_" + b"a1B2" * 9
    headers = {
        b"authorization": b"Bearer " + secret,
        b"cookie": b"id=" + secret,
        b"x-api-key": secret,
        b"mcp-param-city": b"Paris",
        b"user-agent": b"agent " + secret,
        b"mcp-session-id": b"s",
        b"origin": b"http://localhost:1",
        secret.lower(): b"v",
    }
    asked = noted(journal, headers)[0]
    assert secret.decode().lower() not in str(asked).lower()
    assert asked["metadata"]["http"]["headers"] == {
        "User-Agent": "agent [redacted]",
        "Mcp-Session-Id": asked["metadata"]["session"],
        "Origin": "http://localhost:1",
        "Authorization": "(present)",
        "Cookie": "(present)",
        "X-Api-Key": "(present)",
        "Mcp-Param-City": "(present)",
        "[redacted]": "(present)",
    }


@rows(
    ("given", "expected"),
    [
        (encode("é ghp_" + "a1B2" * 9), "é [redacted]"),
        (b" " + encode("é ghp_" + "a1B2" * 9), "é [redacted]"),
        (encode("é"), "=?base64?w6k=?="),
        (b"=?base64?" + b64encode(b"ghp_" + b"a1B2" * 9), "(present)"),
        (b"=?BASE64?" + b64encode(b"ghp_" + b"a1B2" * 9) + b"?=", "(present)"),
        (b"ghp_" + b"a1B2" * 600 + b" ghp_" + b"a1B2" * 600, "[redacted] [redacted]"),
    ],
)
def test_a_secret_is_masked_however_long_or_encoded_it_is(journal: Journal, given: bytes, expected: str) -> None:
    shown = noted(journal, {b"mcp-name": given})[0]["metadata"]["http"]["headers"]["Mcp-Name"]
    assert shown.startswith(expected)


def test_names_values_and_their_number_are_bounded(journal: Journal) -> None:
    headers = {b"x-%d-" % number + b"n" * 500: b"v" for number in range(500)} | {b"accept": b"\xff" * 5_000}
    found = noted(journal, headers)[0]["metadata"]["http"]["headers"]
    assert (len(found), max(map(len, found)), max(map(len, found.values()))) == (40, 60, 200)
    assert found["Accept"].startswith("ÿÿ")
