"""Who may use which session over HTTP, within which limits, and who may enter at all. No socket."""

from typing import Any

from assay.edges.auth import Principal
from assay.edges.http.access import Door
from assay.edges.http.origin_check import Safety
from assay.edges.http.sessions import Sessions
from assay.settings.http_section import Http
from kit.rows import rows


def sessions(*, idle: bool = False, **limits: Any) -> Sessions[str]:
    """A table of sessions whose clock stands still."""
    return Sessions(Http(**limits), lambda: 1000.0, is_idle=lambda _: idle)


def test_a_session_is_found_by_its_own_principal_alone() -> None:
    table = sessions()
    session = table.begin("ada", "server")
    assert session is not None
    ident = session.ident.encode()
    assert table.find(ident, "ada") is session
    assert table.find(ident, "bob") is None
    assert table.find(b"another", "ada") is None


def test_the_limit_of_sessions_is_exact() -> None:
    table = sessions(sessions=2)
    assert [table.begin(name, "server") is not None for name in ("ada", "bob", "cid")] == [True, True, False]


def test_the_share_of_a_principal_is_exact_and_leaves_room_for_others() -> None:
    table = sessions(sessions_each=1)
    assert [table.begin(name, "server") is not None for name in ("ada", "ada", "bob")] == [True, False, True]


def test_at_its_share_a_principal_ends_a_session_of_its_own() -> None:
    table = sessions(idle=True, sessions_each=1)
    first, other = table.begin("ada", "server"), table.begin("bob", "server")
    again = table.begin("ada", "server")
    assert first is not None
    assert first.ended
    assert [each for each in table if each.principal == "ada"] == [again]
    assert other in list(table)


def test_a_client_that_resumes_gets_what_came_after_its_last_event() -> None:
    session = sessions().begin("ada", "server")
    assert session is not None
    stream = session.new_stream()
    kept = [session.keep(stream, number, b"event %d" % number) for number in (1, 2, 3)]
    assert session.after(kept[0]) == [(kept[1], b"event 2"), (kept[2], b"event 3")]
    assert session.after(kept[2]) == []
    assert session.after(b"9-1") is None


@rows(
    ("headers", "enters"),
    [
        ({b"host": b"127.0.0.1:8765"}, True),
        ({b"host": b"evil.example"}, False),
        ({b"host": b"127.0.0.1", b"origin": b"http://localhost:3000"}, True),
        ({b"host": b"127.0.0.1", b"origin": b"https://evil.example"}, False),
        ({}, False),
    ],
)
def test_a_page_or_a_name_that_is_not_ours_does_not_enter(headers: dict[bytes, bytes], enters: bool) -> None:
    door = Door(Safety(), None, Principal("anonymous", "community"))
    assert (door.known(headers) is not None) is enters
