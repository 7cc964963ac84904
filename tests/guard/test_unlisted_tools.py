"""Calls of tools that the guard has not seen listed: it requests the list itself. No I/O, no process."""

from typing import Any, Literal

from assay.contracts.tool_contract import Contract
from assay.contracts.tool_contracts import Tools
from assay.core.conversation import Conversation
from assay.core.policy import Policy
from assay.guard.backoff import Backoff
from assay.guard.deliveries import ClientTraits, Delivery, Loss, Outcome, ServerTraits
from assay.guard.session import GuardedSession, Timing
from assay.guard.sinks import Sink, Sinks
from assay.ladder import syntax
from kit.guard_process import INITIALIZED, call, frame_of, initialize, notification, request, result
from kit.rows import rows

SEARCH = {
    "name": "search",
    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]},
    "outputSchema": {"type": "object", "properties": {"hits": {"type": "integer"}}, "required": ["hits"]},
}
BROKEN = {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}}
HITS = {"content": [], "structuredContent": {"hits": 1}}
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
}


class Rules(Sink):
    """The findings that were recorded, each with the method of its message."""

    def __init__(self) -> None:
        self.found_rules: list[tuple[str | None, str]] = []

    def found(self, verdict: Any, _now: float, _session: str, _sent: int, /) -> None:
        self.found_rules += [(verdict.method, each.rule) for each in verdict.violations]


class Talk:
    """A guarded session with a server that has tools, and has listed none."""

    def __init__(
        self, mode: Literal["enforce", "audit"] = "enforce", *, opens: bool = True, policy: Policy | None = None
    ) -> None:
        self.now = 1000.0
        self.rules = Rules()
        self.session = GuardedSession(
            Conversation(mode=mode, policy=policy),
            Sinks([self.rules]),
            ClientTraits("stdio", sees_loss=True, carries_raw=True),
            ServerTraits("child", restorable=True),
            timing=Timing(60.0, 60.0, 5.0, lambda: self.now),
            backoff=Backoff("always", 2),
        )
        if opens:
            self.open()

    def open(self) -> None:
        """The handshake."""
        self.client(initialize())
        capabilities = {"tools": {"listChanged": True}}
        answer = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": INFORMATION}
        self.server(result("open", answer))
        self.client(INITIALIZED)

    def client(self, message: Any) -> Outcome:
        """The client sends a message."""
        return self.session.from_client(frame_of(message))

    def server(self, message: Any) -> Outcome:
        """The server sends a message."""
        return self.session.from_server(frame_of(message))

    def asked(self, message: Any) -> dict[str, Any]:
        """The list that is requested because of a call, which waits."""
        made = self.client(message)
        assert made.held == message
        [sent] = read(made.to_server)
        assert isinstance(sent, dict)
        assert sent["method"] == "tools/list"
        return sent

    def listed(self, asked: dict[str, Any], *tools: Any, **more: Any) -> Outcome:
        """The server answers with these tools."""
        return self.server(result(asked["id"], {"tools": list(tools), **more}))


INFORMATION = {"name": "a", "version": "1"}


def read(deliveries: tuple[Delivery, ...]) -> list[Any]:
    return [syntax.read(each.frame) for each in deliveries]


def modern(ident: Any, **arguments: Any) -> dict[str, Any]:
    """A call in the revision without a handshake."""
    return request(ident, "tools/call", {"name": "search", "arguments": arguments, "_meta": META})


def test_a_call_waits_for_the_list_and_is_judged_by_it() -> None:
    talk = Talk()
    made = talk.listed(talk.asked(call(1, words=5)), SEARCH)
    assert made.to_server == ()
    [refused] = read(made.to_client)
    assert refused["result"]["isError"] is True
    assert talk.rules.found_rules == [("tools/call", "contract/input")]


def test_a_good_call_is_forwarded_as_it_came_and_its_result_is_judged() -> None:
    talk = Talk()
    frame = frame_of(call(1))
    made = talk.listed(talk.asked(call(1)), SEARCH)
    assert [each.frame for each in made.to_server] == [frame]
    assert made.to_client == ()
    [answer] = read(talk.server(result(1, {"content": [], "structuredContent": {"hits": "many"}})).to_client)
    assert answer["result"]["isError"] is True
    assert talk.session.calm, "nothing else is looked at from now on"


def test_the_client_gets_nothing_of_the_list() -> None:
    talk = Talk()
    asked = talk.asked(call(1))
    assert talk.listed(asked, SEARCH).to_client == ()
    # A second answer is one without a request.
    assert talk.listed(asked, SEARCH).to_client == ()


def test_all_pages_are_requested() -> None:
    talk = Talk()
    made = talk.listed(talk.asked(call(1, words=5)), {**SEARCH, "name": "other"}, nextCursor="2")
    [asked] = read(made.to_server)
    assert asked["params"] == {"cursor": "2"}
    assert read(talk.listed(asked, SEARCH).to_client)[0]["result"]["isError"] is True


def test_several_calls_wait_for_one_list_and_keep_their_order() -> None:
    talk = Talk()
    asked = talk.asked(call(1))
    assert talk.client(call(2)) == Outcome(held=call(2))
    # Anything else passes: the server may need an answer to be able to list its tools.
    assert len(talk.client(request(3, "ping")).to_server) == 1
    assert [each["id"] for each in read(talk.listed(asked, SEARCH).to_server)] == [1, 2]


def test_a_quarantined_tool_stays_closed() -> None:
    talk = Talk()
    made = talk.listed(talk.asked(request(1, "tools/call", {"name": "broken", "arguments": {}})), SEARCH, BROKEN)
    assert made.to_server == ()
    assert read(made.to_client)[0]["error"]["code"] == -32602
    assert ("tools/list", "contract/schema") in talk.rules.found_rules


@rows(
    "answer",
    [
        {"error": {"code": -32603, "message": "not now"}},
        {"result": {"tools": "none"}},
        {"result": {}},
    ],
    ids=["an error", "an invalid list", "no list"],
)
def test_a_call_goes_on_with_a_finding_if_no_list_comes(answer: dict[str, Any]) -> None:
    talk = Talk()
    made = talk.server({"jsonrpc": "2.0", "id": talk.asked(call(1, words=5))["id"], **answer})
    assert [each["id"] for each in read(made.to_server)] == [1]
    assert talk.rules.found_rules[-1] == ("tools/call", "contract/not-judged")
    # Not at once again.
    assert len(talk.client(call(2)).to_server) == 1
    talk.now += 61
    talk.client(call(3))
    assert talk.asked(call(4))["id"] != 4


def test_a_call_waits_no_longer_than_five_seconds() -> None:
    talk = Talk()
    talk.asked(call(1))
    assert talk.session.deadline == talk.now + 5
    talk.now += 4.9
    assert talk.session.tick() == Outcome()
    talk.now += 0.1
    assert [each["id"] for each in read(talk.session.tick().to_server)] == [1]
    assert talk.rules.found_rules == [("tools/call", "contract/not-judged")]


def test_a_strict_policy_refuses_what_is_not_judged() -> None:
    talk = Talk(policy=Policy({"contract/not-judged": "refuse"}))
    made = talk.server({"jsonrpc": "2.0", "id": talk.asked(call(1))["id"], "error": {"code": -32603, "message": ""}})
    assert made.to_server == ()
    assert read(made.to_client)[0]["id"] == 1


def test_under_audit_nothing_is_added_and_the_call_is_reported() -> None:
    talk = Talk("audit")
    made = talk.client(call(1, words=5))
    assert [each.frame for each in made.to_server] == [frame_of(call(1, words=5))]
    assert talk.rules.found_rules == [("tools/call", "contract/not-judged")]


def test_a_revision_without_a_handshake_is_judged_too() -> None:
    talk = Talk(opens=False)
    asked = talk.asked(modern(1, words=5))
    assert asked["params"]["_meta"] == META
    made = talk.listed(asked, SEARCH, resultType="complete", ttlMs=0, cacheScope="private")
    assert made.to_server == ()
    assert read(made.to_client)[0]["result"]["isError"] is True


def test_a_tool_that_is_new_after_a_change_is_listed_again() -> None:
    talk = Talk()
    talk.client(request("list", "tools/list"))
    talk.server(result("list", {"tools": []}))
    assert talk.session.calm
    made = talk.client(call(1))
    assert len(made.to_server) == 1
    assert talk.rules.found_rules == [("tools/call", "contract/unknown-tool")]
    talk.server(notification("notifications/tools/list_changed"))
    assert len(talk.listed(talk.asked(call(2)), SEARCH).to_server) == 1


def test_a_known_tool_waits_for_nothing() -> None:
    talk = Talk()
    talk.client(request("list", "tools/list"))
    talk.server(result("list", {"tools": [SEARCH]}))
    talk.server(notification("notifications/tools/list_changed"))
    assert len(talk.client(call(1)).to_server) == 1


def test_a_cancellation_of_a_waiting_call_follows_it() -> None:
    talk = Talk()
    asked = talk.asked(call(1))
    cancel = notification("notifications/cancelled", {"requestId": 1})
    assert talk.client(cancel) == Outcome(held=cancel)
    assert [each.get("method") for each in read(talk.listed(asked, SEARCH).to_server)] == [
        "tools/call", "notifications/cancelled",
    ]  # fmt: skip
    assert talk.rules.found_rules == []


def test_the_next_server_is_asked_for_its_tools() -> None:
    talk = Talk()
    first = talk.asked(call(1, words=5))
    assert talk.session.server_lost(Loss("exited", "it exited")).to_client == ()
    [again] = read(talk.session.server_ready().to_server)
    made = talk.server(
        result(
            again["id"],
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": INFORMATION,
            },
        )
    )
    [asked] = [each for each in read(made.to_server) if each["method"] == "tools/list"]
    assert asked["id"] != first["id"]
    assert read(talk.listed(asked, SEARCH).to_client)[0]["result"]["isError"] is True


def test_a_waiting_call_is_answered_if_the_server_is_lost_for_good() -> None:
    talk = Talk()
    talk.asked(call(1))
    [answer] = read(talk.session.close(Loss("exited", "it exited with status 1")).to_client)
    assert (answer["id"], "error" in answer) == (1, True)


def test_a_client_that_sends_nothing_more_gets_its_answer() -> None:
    talk = Talk()
    asked = talk.asked(call(1))
    assert talk.session.client_done().closed is None
    assert talk.session.owed
    talk.listed(asked, SEARCH)
    assert talk.server(result(1, HITS)).closed is not None


def test_a_server_without_tools_is_not_asked_for_them() -> None:
    talk = Talk(opens=False)
    talk.client(initialize())
    talk.server(result("open", {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFORMATION}))
    talk.client(INITIALIZED)
    assert talk.client(call(1)).held is None


def test_locked_definitions_serve_until_the_server_lists_its_own() -> None:
    tools = Tools(10)
    tools.expect({"search": Contract("search", SEARCH["inputSchema"], SEARCH["outputSchema"])})
    conversation = Conversation(revision="2025-11-25", tools=tools)
    session = GuardedSession(conversation, Sinks(), ClientTraits("stdio"), ServerTraits("child"))
    made = session.from_client(frame_of(call(1, words=5)))
    assert made.to_server == ()
    assert read(made.to_client)[0]["result"]["isError"] is True
    assert len(session.from_client(frame_of(call(2))).to_server) == 1


def test_a_tool_beyond_the_limit_is_judged_once_it_was_called() -> None:
    """The list has more tools than the guard remembers: it keeps the one that it has listed the tools for."""
    from assay.base.limits import Limits

    tools = [{**SEARCH, "name": f"search{number}"} for number in range(9)]
    conversation = Conversation(revision="2025-11-25", limits=Limits(tools=3))
    session = GuardedSession(conversation, Sinks(), ClientTraits("stdio"), ServerTraits("child"))
    session.from_client(frame_of(request("list", "tools/list")))
    session.from_server(frame_of(result("list", {"tools": tools})))
    made = session.from_client(frame_of(call(1, "search7", words=5)))
    [asked] = read(made.to_server)
    made = session.from_server(frame_of(result(asked["id"], {"tools": tools})))
    assert read(made.to_client)[0]["result"]["isError"] is True


def test_calls_beyond_a_limit_do_not_wait() -> None:
    talk = Talk()
    talk.asked(call(0))
    held = [talk.client(call(ident)).held is not None for ident in range(1, 1001)]
    assert held.count(True) == 999
    assert talk.rules.found_rules == [("tools/call", "contract/not-judged")]


def in_revision(revision: str) -> Talk:
    """A session of another revision."""
    talk = Talk(opens=False)
    talk.client(initialize(revision))
    answer = {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": INFORMATION}
    talk.server(result("open", answer))
    talk.client(INITIALIZED)
    return talk


def test_a_batch_with_such_a_call_waits_as_a_whole() -> None:
    talk = in_revision("2025-03-26")
    batch = [request("p", "ping"), call(1, words=5), call(2, words="sea"), notification("notifications/roots")]
    made = talk.client(batch)
    assert made.held == batch
    [asked] = read(made.to_server)
    assert asked["method"] == "tools/list"
    made = talk.listed(asked, SEARCH)
    [forwarded] = read(made.to_server)
    assert [each["id"] for each in forwarded if "id" in each] == ["p", 2]
    [[refused]] = read(made.to_client)
    assert (refused["id"], "error" in refused) == (1, True)
    assert ("tools/call", "contract/not-judged") not in talk.rules.found_rules


def test_a_batch_cannot_hide_such_a_call_behind_an_invalid_entry() -> None:
    talk = in_revision("2025-03-26")
    made = talk.client([{"jsonrpc": "2.0", "id": 9, "method": 5}, call(1, words=5)])
    assert made.held is not None


@rows("ident", [b"1.0", b"1e2", b"123456789012345678901234567890", b"-0"])
def test_the_spelling_of_an_id_does_not_help(ident: bytes) -> None:
    talk = Talk()
    frame = frame_of(call("$", words=5)).replace(b'"$"', ident)
    [asked] = read(talk.session.from_client(frame).to_server)
    assert asked["method"] == "tools/list"
    [refused] = talk.listed(asked, SEARCH).to_client
    assert b'"id":' + ident + b"," in refused.frame
    assert b'"isError":true' in refused.frame


def test_calls_of_several_sessions_all_wait_while_one_of_them_lists() -> None:
    """They share the tools of a server without sessions: the first request for the list must not open a gap."""
    tools = Tools(100)
    talks = [Talk(opens=False), Talk(opens=False)]
    asked = []
    for talk in talks:
        talk.session = GuardedSession(
            Conversation(revision=MODERN, tools=tools), Sinks([talk.rules]), ClientTraits("http"), ServerTraits("child")
        )
        asked.append(talk.asked(modern(1, words=5)))
    for talk, each in zip(talks, asked, strict=True):
        made = talk.listed(each, SEARCH, resultType="complete", ttlMs=0, cacheScope="private")
        assert made.to_server == ()
        assert talk.rules.found_rules == [("tools/call", "contract/input")]


@rows("spelt", [rb"tools\/call", rb"tools\u002fcall", rb"\u0074ools/call"])
def test_a_method_with_escapes_is_a_call_too(spelt: bytes) -> None:
    talk = Talk()
    [asked] = read(talk.session.from_client(frame_of(call(1, words=5)).replace(b"tools/call", spelt)).to_server)
    assert asked["method"] == "tools/list"


def sharing(tools: Tools, count: int) -> list[Talk]:
    """Sessions of a server without sessions, which share its tools, and can be woken."""
    talks = []
    for _ in range(count):
        talk = Talk(opens=False)
        talk.session = GuardedSession(
            Conversation(revision=MODERN, tools=tools), Sinks([talk.rules]), ClientTraits("http"), ServerTraits("child")
        )
        talk.session.on_listed = lambda: None
        talks.append(talk)
    return talks


WHOLE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def test_one_of_several_sessions_lists_for_all() -> None:
    woken: list[int] = []
    talks = sharing(Tools(100), 3)
    asked = talks[0].asked(modern(1, words=5))
    for number, talk in enumerate(talks[1:], 1):
        talk.session.on_listed = lambda number=number: woken.append(number)
        made = talk.client(modern(1, words=5))
        assert (made.held is not None, made.to_server) == (True, ())
    talks[0].listed(asked, SEARCH, **WHOLE)
    assert woken == [1, 2]
    for talk in talks[1:]:
        assert read(talk.session.release().to_client)[0]["result"]["isError"] is True
        assert talk.rules.found_rules == [("tools/call", "contract/input")]


def test_if_the_one_that_lists_leaves_another_lists() -> None:
    first, second = sharing(Tools(100), 2)
    first.asked(modern(1, words=5))
    second.client(modern(1, words=5))
    first.session.abandon()
    [asked] = read(second.session.release().to_server)
    assert asked["method"] == "tools/list"
    assert read(second.listed(asked, SEARCH, **WHOLE).to_client)[0]["result"]["isError"] is True


def test_contracts_of_waiting_calls_may_be_compiled_elsewhere() -> None:
    patterns = {f"p{number}": {"pattern": f"^\\p{{L}}{{0,{number}}}$"} for number in range(50)}
    slow = {**SEARCH, "inputSchema": {"type": "object", "properties": {**patterns, "words": {"type": "string"}}}}
    compiling: list[Contract] = []
    talk = Talk()
    talk.session.compile_first = compiling.extend
    made = talk.listed(talk.asked(call(1, words=5)), slow)
    assert (made.to_client, made.to_server) == ((), ())
    assert [each.name for each in compiling] == ["search"]
    for each in compiling:
        list(each.compiling())
    assert read(talk.session.release().to_client)[0]["result"]["isError"] is True
    assert talk.session.release().to_client == ()


def test_a_session_that_ends_answers_calls_whose_contracts_are_compiled() -> None:
    patterns = {f"p{number}": {"pattern": f"^\\p{{L}}{{0,{number}}}$"} for number in range(50)}
    slow = {**SEARCH, "inputSchema": {"type": "object", "properties": patterns}}
    talk = Talk()
    talk.session.compile_first = lambda _: None
    talk.listed(talk.asked(call(1)), slow)
    made = talk.session.close(Loss("stopped", "the guard was stopped"))
    assert [each["id"] for each in read(made.to_client)] == [1]


def test_a_list_that_changes_while_the_guard_lists_is_requested_anew() -> None:
    talk = Talk()
    asked = talk.asked(call(1, words=5))
    talk.server(notification("notifications/tools/list_changed"))
    [again] = read(talk.listed(asked, BROKEN, nextCursor="x").to_server)
    assert again["method"] == "tools/list"
    assert "cursor" not in again.get("params", {})
    assert read(talk.listed(again, SEARCH).to_client)[0]["result"]["isError"] is True


def test_two_servers_that_end_when_they_are_asked_for_their_tools_are_enough() -> None:
    talk = Talk()
    talk.asked(call(1, words=5))
    for turn in range(2):
        talk.session.server_lost(Loss("exited", "it exited with status 1"))
        made = talk.session.server_ready()
        [opening] = [each for each in read(made.to_server) if each.get("method") == "initialize"]
        capabilities = {"tools": {"listChanged": True}}
        answer = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": INFORMATION}
        made = talk.server(result(opening["id"], answer))
        methods = [each["method"] for each in read(made.to_server)]
        assert methods[-1] == ("tools/call" if turn else "tools/list")
