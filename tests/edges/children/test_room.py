"""At the limit of children or sessions, the least recently used idle session ends for a new one."""

from typing import Any

from assay.settings.http_section import Http
from assay.spec.revisions import LATEST
from kit.hosted import NEWEST, Hosted, hosting
from kit.http_client import Answer, call, initialize, request
from kit.memory_http import Exchange

MUTE: dict[str, Any] = {"tools/call:mute": []}
ASKS = {"jsonrpc": "2.0", "id": "s1", "method": "ping"}

Headers = dict[str, Any]


async def opened(hosted: Hosted, who: str = "anonymous") -> Headers:
    """A session in which a client has called a tool."""
    headers = await hosted.open(who)
    assert (await hosted.post(call(1, "search", {"words": "sea"}), headers)).json()["id"] == 1
    return headers


async def opening(hosted: Hosted, who: str = "anonymous") -> Answer:
    """The answer to a client that begins."""
    return await hosted.post(initialize(NEWEST), x_principal=who)


async def statuses(hosted: Hosted, *sessions: Headers) -> list[int]:
    """What each session gets for a ping."""
    return [(await hosted.post(request(9, "ping"), each)).status for each in sessions]


async def asking(hosted: Hosted, headers: Headers) -> Exchange:
    """A request that stays open."""
    exchange = hosted.begin(call("open", "mute", {}), headers)
    await exchange.head()
    return exchange


@hosting(options={"children": 2})
async def test_a_session_that_is_ended_for_another_gets_404_and_its_streams_end(hosted: Hosted) -> None:
    sessions = [await opened(hosted) for _ in range(5)]
    assert await statuses(hosted, *sessions) == [404, 404, 404, 200, 200]
    assert (await hosted.get(sessions[0])).status == 404
    assert [each.is_over for each in hosted.children] == [True, True, True, False, False]
    listening = hosted.listen(sessions[3])
    await listening.head()
    assert await statuses(hosted, sessions[4]) == [200]
    await opened(hosted)
    assert await statuses(hosted, *sessions[3:]) == [404, 200], "a stream is no use, and a ping is one"
    assert (await listening.answer()).status == 200


@hosting(http=Http(sessions=1), options={"children": 1})
async def test_a_client_that_is_refused_ends_no_session(hosted: Hosted) -> None:
    headers = await opened(hosted)
    bad = initialize(NEWEST)
    del bad["params"]["clientInfo"]
    answer = await hosted.post(bad)
    assert (answer.error()["code"], answer.header("mcp-session-id")) == (-32602, None)
    assert await statuses(hosted, headers) == [200]


@hosting(on=MUTE, options={"children": 2})
async def test_a_session_with_an_open_request_never_ends_for_another_which_has_to_wait(hosted: Hosted) -> None:
    busy, idle = await opened(hosted), await opened(hosted)
    waits = await asking(hosted, busy)
    other = await opened(hosted)
    assert await statuses(hosted, busy, idle) == [200, 404]
    await asking(hosted, other)
    answer = await opening(hosted)
    assert (answer.status, answer.header("retry-after"), answer.error()["code"]) == (503, "1", -31016)
    assert await hosted.delete(other) == 200
    assert (await opening(hosted)).status == 200
    hosted.children[0].say({"jsonrpc": "2.0", "id": "open", "result": {"content": []}})
    assert [each["id"] for each in await waits.messages()] == ["open"]


@hosting(on={"notifications/initialized": [["say", ASKS]]}, options={"children": 2})
async def test_a_session_whose_server_waits_for_the_client_or_that_was_never_used_is_idle(hosted: Hosted) -> None:
    """The client may be gone: otherwise such sessions would take all places."""
    waiting = await hosted.open()
    await hosted.listen(waiting).until(b"ping")
    used = await opened(hosted)
    answer = await opening(hosted)
    unused = {**used, "mcp-session-id": answer.header("mcp-session-id")}
    assert await statuses(hosted, waiting, used) == [404, 200]
    await hosted.open()
    assert await statuses(hosted, used, unused) == [200, 404]


@hosting(on=MUTE, options={"children": 4, "children_each": 2})
async def test_a_principal_ends_its_own_sessions_at_its_own_limit_and_takes_no_more_than_its_share(
    hosted: Hosted,
) -> None:
    others = [await opened(hosted, who) for who in ("alice", "carl")]
    bob = [await opened(hosted, "bob") for _ in range(3)]
    assert await statuses(hosted, *others, *bob) == [200, 200, 404, 200, 200]
    await asking(hosted, bob[2])
    bob.append(await opened(hosted, "bob"))
    assert await statuses(hosted, *others, *bob) == [200, 200, 404, 404, 200, 200]
    await asking(hosted, bob[3])
    refused = await opening(hosted, "bob")
    assert (refused.status, refused.header("retry-after")) == (503, "1")
    await hosted.delete(others[1])
    refused = await opening(hosted, "bob")
    assert (refused.status, refused.header("retry-after")) == (429, "1")
    assert refused.error()["data"]["detail"] == "you have too many servers at once"
    assert await statuses(hosted, others[0]) == [200]
    for who in ("alice", "bob", "dora"):
        assert (await hosted.ask(request(1, "tools/list", {}, LATEST), x_principal=who)).status == 200


@hosting(options={"children": 4, "children_each": 4})
async def test_at_the_limit_of_all_a_principal_ends_its_own_sessions_first(hosted: Hosted) -> None:
    """However many sessions a principal opens one after the other, the others keep theirs."""
    alice = await opened(hosted, "alice")
    bob = [await opened(hosted, "bob") for _ in range(6)]
    assert await statuses(hosted, alice, *bob) == [200, 404, 404, 404, 200, 200, 200]
    carl = await opened(hosted, "carl")
    found = await statuses(hosted, alice, *bob[3:], carl)
    assert found == [404, 200, 200, 200, 200], "one without any ends the first"
