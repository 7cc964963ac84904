"""Calls of tools that the guard has not seen listed: it requests the list itself. No I/O, no process."""

from typing import Any

import pytest

from assay.guard import session as sessions
from assay.guard.deliveries import ClientTraits, Outcome
from assay.model.limits import Limits
from assay.rules.policy import Policy
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import ToolList, Tools
from kit.guard_process import call, frame_of, notification, request, result
from kit.guarded_session import LOST, Guard, opened_in, read
from kit.http_client import meta
from kit.rows import rows
from kit.talk import HITS, SEARCH, error

BROKEN = {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}}
MODERN = "2026-07-28"
WHOLE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
NOT_JUDGED = ("tools/call", "contract/not-judged")
BAD_INPUT = ("tools/call", "contract/input")


class Unlisted(Guard):
    """A guarded session with a server that has tools, and has listed none."""

    def asked(self, message: Any) -> dict[str, Any]:
        """The list that is requested because of a call, which waits."""
        made = self.client(message)
        assert made.held == message
        [sent] = read(made.to_server)
        assert isinstance(sent, dict)
        assert sent["method"] == "tools/list"
        return sent

    def lists(self, asked: dict[str, Any], *tools: Any, **more: Any) -> Outcome:
        """The server answers with these tools."""
        return self.server(result(asked["id"], {"tools": list(tools), **more}))


def unlisted(revision: str = "2025-11-25", **options: Any) -> Unlisted:
    """One after the handshake."""
    return Unlisted(timeout=60.0, restorable=True, **options).opened(revision, tools={"listChanged": True})


def modern(ident: Any, **arguments: Any) -> dict[str, Any]:
    """A call in the revision without a handshake."""
    return request(ident, "tools/call", {"name": "search", "arguments": arguments, "_meta": meta()})


def is_refused(made: Outcome) -> bool:
    """Whether the first thing that the client gets is a failed result of its call, and the server gets nothing."""
    return read(made.to_client)[0]["result"]["isError"] is True and made.to_server == ()


def test_a_call_waits_for_the_list_and_is_judged_by_it_and_so_is_its_result() -> None:
    talk = unlisted()
    asked = talk.asked(call(1, words=5))
    assert is_refused(talk.lists(asked, SEARCH))
    assert talk.records.finds == [BAD_INPUT]
    assert talk.lists(asked, SEARCH).to_client == (), "the second answer to a request of the guard"
    talk = unlisted()
    made = talk.lists(talk.asked(call(1)), SEARCH)
    assert ([each.frame for each in made.to_server], made.to_client) == ([frame_of(call(1))], ())
    assert is_refused(talk.server(result(1, {"content": [], "structuredContent": {"hits": "many"}})))
    assert talk.session.calm, "nothing else is looked at from now on"


def test_all_pages_are_requested() -> None:
    talk = unlisted()
    [asked] = read(talk.lists(talk.asked(call(1, words=5)), {**SEARCH, "name": "other"}, nextCursor="2").to_server)
    assert asked["params"] == {"cursor": "2"}
    assert is_refused(talk.lists(asked, SEARCH))


def test_several_calls_wait_for_one_list_and_keep_their_order_and_so_does_a_cancellation() -> None:
    talk = unlisted()
    asked = talk.asked(call(1))
    assert talk.client(call(2)) == Outcome(held=call(2))
    cancel = notification("notifications/cancelled", {"requestId": 1})
    assert talk.client(cancel) == Outcome(held=cancel)
    # Anything else passes: the server may need an answer to be able to list its tools.
    assert len(talk.client(request(3, "ping")).to_server) == 1
    assert read(talk.lists(asked, SEARCH).to_server) == [call(1), call(2), cancel]
    assert talk.records.finds == []


def test_a_quarantined_tool_stays_closed() -> None:
    talk = unlisted()
    made = talk.lists(talk.asked(request(1, "tools/call", {"name": "broken", "arguments": {}})), SEARCH, BROKEN)
    assert made.to_server == ()
    assert read(made.to_client)[0]["error"]["code"] == -32602
    assert ("tools/list", "contract/schema") in talk.records.finds


@rows("answer", [error("", -32603), result("", {"tools": "none"}), result("", {})])
def test_a_call_goes_on_with_a_finding_if_no_list_comes(answer: dict[str, Any]) -> None:
    talk = unlisted()
    made = talk.server({**answer, "id": talk.asked(call(1, words=5))["id"]})
    assert read(made.to_server) == [call(1, words=5)]
    assert talk.records.finds[-1] == NOT_JUDGED
    # Not at once again.
    assert len(talk.client(call(2)).to_server) == 1
    talk.now += 61
    talk.client(call(3))
    assert talk.asked(call(4))["id"] != 4


def test_a_call_waits_no_longer_than_five_seconds() -> None:
    talk = unlisted()
    talk.asked(call(1))
    assert talk.session.deadline == talk.now + 5
    assert talk.later(4.9) == Outcome()
    assert read(talk.later(0.1).to_server) == [call(1)]
    assert talk.records.finds == [NOT_JUDGED]


def test_a_call_that_waited_is_looked_at_before_its_own_time_is_over() -> None:
    """Who drives the session looks at it when it is due as the call comes: a list that comes later changes nothing."""
    guard = Unlisted(timeout=1.0).opened(tools={})
    asked = guard.asked(call(1))
    due = guard.session.deadline
    guard.now += 0.5
    guard.lists(asked, SEARCH)
    assert due <= guard.now + 1.0
    guard.later(due - guard.now)
    assert guard.session.deadline == guard.now + 0.5
    assert [each.code for each in guard.later(0.5).failed] == ["TIMEOUT"]


def test_a_strict_policy_refuses_what_is_not_judged() -> None:
    talk = unlisted(policy=Policy({"contract/not-judged": "refuse"}))
    made = talk.server(error(talk.asked(call(1))["id"], -32603))
    assert (made.to_server, read(made.to_client)[0]["id"]) == ((), 1)


def test_under_audit_nothing_is_added_and_the_call_is_reported() -> None:
    talk = unlisted(mode="audit")
    assert read(talk.client(call(1, words=5)).to_server) == [call(1, words=5)]
    assert talk.records.finds == [NOT_JUDGED]


def test_a_tool_that_is_new_after_a_change_is_listed_again_and_a_known_one_waits_for_nothing() -> None:
    changed = notification("notifications/tools/list_changed")
    talk = unlisted().listed()
    assert talk.session.calm
    assert len(talk.client(call(1)).to_server) == 1
    assert talk.records.finds == [("tools/call", "contract/unknown-tool")]
    talk.server(changed)
    assert len(talk.lists(talk.asked(call(2)), SEARCH).to_server) == 1
    talk.server(changed)
    assert len(talk.client(call(3)).to_server) == 1


def restarted(talk: Unlisted) -> list[Any]:
    """What the next server gets once it has opened, after the last one has ended."""
    assert talk.session.server_lost(LOST).to_client == ()
    [opening] = [each for each in read(talk.session.server_ready().to_server) if each["method"] == "initialize"]
    return read(talk.server(result(opening["id"], opened_in(capabilities={"tools": {"listChanged": True}}))).to_server)


def test_the_next_server_is_asked_for_its_tools_and_two_that_end_for_it_are_enough() -> None:
    talk = unlisted()
    first = talk.asked(call(1, words=5))
    [asked] = [each for each in restarted(talk) if each["method"] == "tools/list"]
    assert asked["id"] != first["id"]
    assert is_refused(talk.lists(asked, SEARCH))
    talk = unlisted()
    talk.asked(call(1, words=5))
    assert [restarted(talk)[-1]["method"] for _ in range(2)] == ["tools/list", "tools/call"]


def test_a_waiting_call_is_answered_if_the_server_is_lost_for_good_or_the_client_sends_nothing_more() -> None:
    talk = unlisted()
    talk.asked(call(1))
    [answer] = read(talk.session.close(LOST).to_client)
    assert (answer["id"], "error" in answer) == (1, True)
    talk = unlisted()
    asked = talk.asked(call(1))
    assert (talk.session.client_done().closed, talk.session.owed) == (None, True)
    talk.lists(asked, SEARCH)
    assert talk.server(result(1, HITS)).closed is not None


def test_neither_a_server_without_tools_is_asked_for_them_nor_one_whose_call_is_refused_anyway() -> None:
    assert Unlisted().opened(logging={}).client(call(1)).held is None
    talk = unlisted()
    made = talk.client(request(1, "tools/call", {"name": "search", "arguments": 5}))
    assert (made.held, made.to_server, talk.records.rules) == (None, (), ["protocol/params"])


def test_locked_definitions_serve_until_the_server_lists_its_own() -> None:
    tools = Tools(10)
    tools.expect(ToolList({"search": Contract(SEARCH)}))
    talk = Guard(revision="2025-11-25", tools=tools)
    assert is_refused(talk.client(call(1, words=5)))
    assert len(talk.client(call(2)).to_server) == 1


def test_a_tool_beyond_the_limit_is_judged_once_it_was_called() -> None:
    """The list has more tools than the guard remembers: it keeps the one that it has listed the tools for."""
    tools = [{**SEARCH, "name": f"search{number}"} for number in range(9)]
    talk = Unlisted(revision="2025-11-25", limits=Limits(tools=3)).listed(*tools)
    assert is_refused(talk.lists(talk.asked(call(1, "search7", words=5)), *tools))


def test_calls_wait_within_bounds_of_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = unlisted()
    talk.asked(call(0))
    held = [talk.client(call(ident)).held is not None for ident in range(1, 1001)]
    assert (held.count(True), talk.records.finds) == (999, [NOT_JUDGED])
    monkeypatch.setattr(sessions, "HELD_BYTES", 400)
    talk = unlisted()
    talk.asked(call(1))
    beyond = talk.client(call(2, words="x" * 400))
    assert (beyond.held, len(beyond.to_server), talk.records.finds) == (None, 1, [NOT_JUDGED])


def test_a_batch_with_such_a_call_waits_as_a_whole() -> None:
    """Also behind an invalid entry."""
    assert unlisted("2025-03-26").client([{"jsonrpc": "2.0", "id": 9, "method": 5}, call(1, words=5)]).held is not None
    talk = unlisted("2025-03-26")
    batch = [request("p", "ping"), call(1, words=5), call(2, words="sea"), notification("notifications/roots")]
    made = talk.lists(talk.asked(batch), SEARCH)
    [forwarded] = read(made.to_server)
    assert [each["id"] for each in forwarded if "id" in each] == ["p", 2]
    [[refused]] = read(made.to_client)
    assert (refused["id"], "error" in refused) == (1, True)
    assert NOT_JUDGED not in talk.records.finds


SPELLINGS = [
    *((b'"$"', each) for each in (b"1.0", b"1e2", b"123456789012345678901234567890", b"-0")),
    *((b"tools/call", each) for each in (rb"tools\/call", rb"tools\u002fcall", rb"\u0074ools/call")),
]


@rows(("usual", "spelt"), SPELLINGS)
def test_no_spelling_of_an_id_or_a_method_helps(usual: bytes, spelt: bytes) -> None:
    talk = unlisted()
    frame = frame_of(call("$", words=5)).replace(usual, spelt)
    [asked] = read(talk.client(frame).to_server)
    assert asked["method"] == "tools/list"
    made = talk.lists(asked, SEARCH)
    assert is_refused(made)
    assert b'"id":' + (spelt if usual == b'"$"' else b'"$"') + b"," in made.to_client[0].frame


def sharing(count: int, *, woken: bool = True) -> list[Unlisted]:
    """Sessions of a server without sessions, which share its tools, and perhaps can be woken."""
    tools = Tools(100)
    talks = [Unlisted(revision=MODERN, tools=tools, client=ClientTraits("http")) for _ in range(count)]
    for talk in talks if woken else ():
        talk.session.on_listed = lambda: None
    return talks


def test_calls_of_several_sessions_all_wait_while_one_of_them_lists() -> None:
    """The first request for the list must not open a gap."""
    talks = sharing(2, woken=False)
    asked = [talk.asked(modern(1, words=5)) for talk in talks]
    for talk, each in zip(talks, asked, strict=True):
        assert talk.lists(each, SEARCH, **WHOLE).to_server == ()
        assert talk.records.finds == [BAD_INPUT]


def test_one_of_several_sessions_lists_for_all_and_another_one_if_it_leaves() -> None:
    woken: list[int] = []
    talks = sharing(3)
    asked = talks[0].asked(modern(1, words=5))
    for number, talk in enumerate(talks[1:], 1):
        talk.session.on_listed = lambda number=number: woken.append(number)
        made = talk.client(modern(1, words=5))
        assert (made.held is not None, made.to_server) == (True, ())
    talks[0].lists(asked, SEARCH, **WHOLE)
    assert woken == [1, 2]
    for talk in talks[1:]:
        assert is_refused(talk.session.release())
        assert talk.records.finds == [BAD_INPUT]
    first, second = sharing(2)
    first.asked(modern(1, words=5))
    second.client(modern(1, words=5))
    first.session.abandon()
    [asked] = read(second.session.release().to_server)
    assert is_refused(second.lists(asked, SEARCH, **WHOLE))


def test_contracts_of_waiting_calls_may_be_compiled_apart_and_the_calls_are_answered() -> None:
    """Also if the session ends meanwhile."""
    patterns = {f"p{number}": {"pattern": f"^\\p{{L}}{{0,{number}}}$"} for number in range(50)}
    slow = {**SEARCH, "inputSchema": {"type": "object", "properties": {**patterns, "words": {"type": "string"}}}}
    compiling: list[Contract] = []
    talk = unlisted()
    talk.session.compile_first = compiling.extend
    made = talk.lists(talk.asked(call(1, words=5)), slow)
    assert (made.to_client, made.to_server) == ((), ())
    assert [each.name for each in compiling] == ["search"]
    for each in compiling:
        list(each.compiling())
    assert is_refused(talk.session.release())
    assert talk.session.release().to_client == ()
    talk = unlisted()
    talk.session.compile_first = lambda _: None
    talk.lists(talk.asked(call(1)), slow)
    assert [each["id"] for each in read(talk.session.close(LOST).to_client)] == [1]


def test_a_list_that_changes_while_the_guard_lists_is_requested_anew() -> None:
    talk = unlisted()
    asked = talk.asked(call(1, words=5))
    talk.server(notification("notifications/tools/list_changed"))
    [again] = read(talk.lists(asked, BROKEN, nextCursor="x").to_server)
    assert again["method"] == "tools/list"
    assert "cursor" not in again.get("params", {})
    assert is_refused(talk.lists(again, SEARCH))
