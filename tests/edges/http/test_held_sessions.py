"""The sessions that a guard holds for its clients: when they end, and how much is kept to be sent again."""

from typing import Any

import pytest

from assay.edges.http import sessions
from assay.edges.http.sessions import REPLAYED, REPLAYED_BYTES, HttpSession, Sessions
from assay.settings.http_section import Http
from kit.rows import rows


class Clock:
    """Stands still, unless it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def held(clock: Clock | None = None) -> Sessions[None]:
    return Sessions(Http(session_seconds=100.0), clock or Clock())


def begun(every: Sessions[None], principal: str = "somebody") -> HttpSession[Any]:
    session = every.begin(principal, None)
    assert session is not None
    return session


def found(every: Sessions[None], session: HttpSession[Any]) -> bool:
    return every.find(session.ident.encode(), session.principal) is session


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_session_that_nobody_uses_ends() -> None:
    clock = Clock()
    every = held(clock)
    session = begun(every)
    for _ in range(5):  # use keeps it
        clock.now += 99
        every.sweep()
        assert found(every, session)
    clock.now += 101
    assert not found(every, session)
    assert len(every) == 0


def test_a_session_that_nobody_uses_is_swept_away() -> None:
    clock = Clock()
    every = held(clock)
    for _ in range(10):
        begun(every)
        clock.now += 30
    every.sweep()
    assert len(every) == 3


def test_a_session_that_somebody_listens_in_does_not_end() -> None:
    """And when the stream breaks off, its client has time to come back."""
    clock = Clock()
    every = held(clock)
    session = begun(every)

    def close() -> None:
        """What would end the stream."""

    session.open_streams.add(close)
    for _ in range(50):
        clock.now += 10
        every.sweep()
    session.open_streams.discard(close)
    clock.now += 40
    every.sweep()
    assert found(every, session)
    clock.now += 101
    every.sweep()
    assert len(every) == 0


# ── what can be sent again takes bounded memory ──────────────────────────────────────────────────────────────────────


def test_what_a_session_keeps_is_bounded() -> None:
    session = begun(held())
    first = session.keep(session.new_stream(), 0, b"")
    for number in range(1, 200):
        session.keep(1, number, b"x" * 1000)
    assert len(session.after(first) or []) == REPLAYED
    session.keep(session.new_stream(), 1, b"x" * REPLAYED_BYTES)
    assert session.after(b"1-0") == []
    assert [len(data) for _, data in session.after(b"2-0") or []] == [REPLAYED_BYTES]
    session.keep(session.new_stream(), 1, b"x" * (REPLAYED_BYTES + 1))
    assert session.after(b"3-0") == []


@rows("last", [b"", b"1", b"0-0", b"9-0", b"99999999999999999999-0", b"1-x", b"-1-0", b"1--1", b"1-0-0", b"x" * 5000])
def test_an_event_id_that_was_never_given_is_unknown(last: bytes) -> None:
    session = begun(held())
    session.keep(session.new_stream(), 1, b"x")
    assert session.after(last) is None


def test_a_principal_that_keeps_much_loses_its_own_and_not_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "REPLAYED_BY_ALL", 10_000)
    every = held()
    several = [begun(every, who) for who in ("alice", *["bob"] * 20)]
    for session in several:
        session.keep(session.new_stream(), 1, b"x" * 900)
    assert [bool(each.after(b"1-0")) for each in several] == [True] + [False] * 10 + [True] * 10


def test_what_all_sessions_keep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those used longest ago lose theirs first; a session that ends gives back what it had."""
    monkeypatch.setattr(sessions, "REPLAYED_BY_ALL", 10_000)
    every = held()
    several = [begun(every) for _ in range(20)]
    for session in several:
        session.keep(session.new_stream(), 1, b"x" * 900)
    kept = [bool(each.after(b"1-0")) for each in several]
    assert kept == [False] * 9 + [True] * 11
    every.drop(several[-1])
    fresh = begun(every)
    fresh.keep(fresh.new_stream(), 1, b"x" * 900)
    assert [bool(each.after(b"1-0")) for each in several[:-1]] == kept[:-1]
