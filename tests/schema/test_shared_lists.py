"""Lists of tools that sessions share: kept once, bounded together, and page by page for each client."""

import gc
from typing import Any

import pytest

from assay.judge.conversation import Conversation, Facts
from assay.model.limits import DEFAULT, Limits
from assay.model.verdict import Party, Verdict
from assay.schema.tool_contracts import Tools
from kit.talk import frame_of, request, result

REVISION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {}}
WHOLE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def tool(name: str, **more: Any) -> dict[str, Any]:
    """A tool whose argument is a number."""
    return {"name": name, "inputSchema": {"type": "object", "properties": {"n": {"type": "number"}}}, **more}


class Client:
    """A client of a server whose tools all clients share, as over HTTP without sessions."""

    def __init__(self, tools: Tools, mode: Any = "enforce", limits: Limits = DEFAULT) -> None:
        self.tools, self._mode, self._limits = tools, mode, limits

    def list(self, *tools: Any, cursor: str | None = None, following: str | None = None) -> list[str]:
        """Request a page, and get these *tools*; return the rules that the result breaks."""
        asked = {"_meta": META, **({} if cursor is None else {"cursor": cursor})}
        noted = {"tools": list(tools), **WHOLE, **({} if following is None else {"nextCursor": following})}
        talk = self._talk()
        talk.hear(Party.CLIENT, frame_of(request(1, "tools/list", asked)), Facts("http", REVISION))
        return [each.rule for each in talk.hear(Party.SERVER, frame_of(result(1, noted))).violations]

    def call(self, name: str, **arguments: Any) -> Verdict:
        """Call a tool."""
        message = request(2, "tools/call", {"name": name, "arguments": arguments, "_meta": META})
        return self._talk().hear(Party.CLIENT, frame_of(message), Facts("http", REVISION))

    def _talk(self) -> Conversation:
        return Conversation(mode=self._mode, revision=REVISION, tools=self.tools, limits=self._limits)


def rules(verdict: Verdict) -> list[str]:
    return [each.rule for each in verdict.violations]


# ── chains ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_clients_that_page_at_once_lose_no_tool() -> None:
    """The last page of one comes between the pages of the other."""
    shared = Tools(100)
    one, other = Client(shared), Client(shared)
    one.list(tool("a"), following="1")
    one.list(tool("b"), cursor="1", following="2")
    other.list(tool("a"), following="1")
    one.list(tool("c"), cursor="2")
    assert rules(one.call("b", n="x")) == ["contract/input"]
    other.list(tool("b"), cursor="1", following="2")
    other.list(tool("c"), cursor="2")
    for name in "abc":
        assert rules(one.call(name, n="x")) == ["contract/input"], name


def test_the_first_and_the_last_page_alone_do_not_make_the_guard_forget_the_rest() -> None:
    """A client skips the middle page: its tools are still judged for every other client."""
    shared = Tools(100)
    one, other = Client(shared), Client(shared)
    one.list(tool("a"), following="1")
    one.list(tool("b"), cursor="1", following="2")
    one.list(tool("c"), cursor="2")
    other.list(tool("a"), following="1")
    other.list(tool("c"), cursor="2")
    assert rules(one.call("b", n="x")) == ["contract/input"]


def test_a_whole_chain_forgets_what_it_does_not_have() -> None:
    shared = Tools(100)
    one = Client(shared)
    one.list(tool("a"), tool("b"))
    one.list(tool("a"), following="1")
    one.list(tool("c"), cursor="1")
    assert rules(one.call("b")) == ["contract/unknown-tool"]
    assert rules(one.call("c", n="x")) == ["contract/input"]


def test_more_chains_than_are_remembered_forget_nothing() -> None:
    shared = Tools(100)
    one = Client(shared)
    for number in range(40):
        one.list(tool("a"), following=f"cursor {number}")
    one.list(tool("b"), cursor="cursor 0")
    assert rules(one.call("a", n="x")) == ["contract/input"]
    assert rules(one.call("b", n="x")) == ["contract/input"]
    # The list is not known to be whole, so an unknown tool may exist: that is reported.
    assert rules(one.call("c")) == ["contract/not-judged"]


# ── sharing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_equal_lists_of_many_sessions_are_one_object() -> None:
    every = [Tools(5000) for _ in range(50)]
    for each in every:
        Client(each).list(*(tool(f"t{number}") for number in range(40)))
    assert len({id(each.known) for each in every}) == 1
    Client(every[0]).list(tool("other"))
    assert len({id(each.known) for each in every}) == 2
    assert rules(Client(every[1]).call("t7", n="x")) == ["contract/input"]


def test_what_one_session_learns_of_a_tool_is_not_anothers() -> None:
    """A tool that is quarantined in one session can be called in the other."""
    one, other = Tools(100), Tools(100)
    for each in (one, other):
        Client(each).list(tool("a"), tool("b"))
    one.quarantine("a")
    assert rules(Client(one).call("a")) == ["contract/set-aside"]
    assert rules(Client(other).call("a", n=1)) == []


def test_a_finding_does_not_depend_on_the_list_of_another_session() -> None:
    """Equal tools in another order, or compiled only when they are called, are another list."""
    one, other = Client(Tools(100)), Client(Tools(100))
    one.list(tool("a"), tool("b"))
    other.list(tool("b"), tool("a"))
    expected = [client.call("c").violations[0].expected for client in (one, other)]
    assert expected == ["a listed tool: a or b", "a listed tool: b or a"]
    bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "https://a.example"}}}}
    large = tool("large", outputSchema={"type": "object", "description": "x" * 200_000})
    for client in (one, other):
        client.list()
    assert one.list(large, bad) == []
    assert other.list(large, following="1") == []
    assert other.list(bad, cursor="1") == ["contract/remote-ref"]
    assert [rules(client.call("bad")) for client in (one, other)] == [["contract/remote-ref"], []]


def test_all_lists_together_are_bounded_and_what_has_no_room_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.schema import tool_contracts

    first, second = Client(Tools(5000)), Client(Tools(5000))
    assert first.list(*(tool(f"a{number}") for number in range(40))) == []
    # Not the total: other tests may have left owners with much, and beyond the bound an equal share is free.
    monkeypatch.setattr(tool_contracts.ENTRIES, "most", 0)
    assert second.list(*(tool(f"b{number}") for number in range(40))) == ["contract/schema-size"]
    # Nothing is known of these tools, and that is said of each call.
    assert rules(second.call("b1", n="x")) == ["contract/not-judged"]
    assert rules(first.call("a1", n="x")) == ["contract/input"]


def test_the_room_of_a_list_is_free_when_no_session_has_it() -> None:
    from assay.schema import tool_contracts

    gc.collect()
    before = tool_contracts.ENTRIES.total
    tools = Tools(5000)
    Client(tools).list(*(tool(f"gone{number}") for number in range(40)))
    assert tool_contracts.ENTRIES.total > before
    del tools
    gc.collect()
    assert tool_contracts.ENTRIES.total == before


# ── compiling ────────────────────────────────────────────────────────────────────────────────────────────────────────


def hostile(count: int) -> dict[str, Any]:
    """An input schema whose patterns take long to compile."""
    return {
        "type": "object",
        "properties": {f"p{number}": {"pattern": f"^\\p{{L}}{{0,{200 + number}}}$"} for number in range(count)},
    }


def test_a_schema_is_compiled_step_by_step_and_then_judges() -> None:
    tools = Tools(100)
    # Schemas of their own: those of other tests may be compiled already.
    slow = {"name": "slow", "inputSchema": hostile(498), "outputSchema": hostile(499)}
    Client(tools).list(slow)
    contract = tools.late("slow")
    assert contract is not None
    assert len(list(contract.compiling())) == 2
    found = rules(Client(tools).call("slow", p0=5))
    assert "contract/not-judged" not in found
    assert tools.late("slow") is None


def test_patterns_beyond_the_budget_of_a_schema_are_left_out_and_reported() -> None:
    tools = Tools(100)
    Client(tools).list({"name": "slow", "inputSchema": hostile(500)})
    found = rules(Client(tools).call("slow", p0="x"))
    assert set(found) == {"contract/pattern"}


# ── what was attacked ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_quarantined_tool_of_an_earlier_page_stays_closed_after_the_last_one() -> None:
    bad = {"name": "evil", "inputSchema": {"type": "object", "properties": {"a": {"type": "strnig"}}}}
    one = Client(Tools(100))
    assert one.list(bad, tool("a"), following="1") == ["contract/schema"]
    one.list(tool("b"), cursor="1")
    assert rules(one.call("evil", a=5)) == ["contract/set-aside"]
    assert rules(one.call("a", n="x")) == ["contract/input"]
    # Listed as it should be, it can be called.
    one.list(tool("evil"), following="1")
    one.list(tool("b"), cursor="1")
    assert rules(one.call("evil", n="x")) == ["contract/input"]


def test_a_list_that_there_was_no_room_for_is_of_no_other_client(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.schema import store

    listed = [tool(f"crowded{number}", description="x") for number in range(3)]
    alice, bob = Client(Tools(100)), Client(Tools(100))
    with monkeypatch.context() as patched:
        patched.setattr(store.TEXTS, "most", 0)
        assert set(alice.list(*listed)) == {"contract/schema-size"}
    assert rules(alice.call("crowded1", n="x")) == ["contract/not-judged"]
    assert rules(alice.call("crowded1", n="x")) == ["contract/not-judged"]
    assert bob.list(*listed) == []
    assert rules(bob.call("crowded1", n="x")) == ["contract/input"]


def test_an_owner_that_has_little_never_waits_for_one_that_has_much() -> None:
    from assay.model.bounded import Shares

    shares = Shares(100)
    assert shares.take("mallory", 100)
    assert not shares.take("mallory", 1)
    assert shares.take("alice", 50)
    assert not shares.take("alice", 1)
    assert shares.take("bob", 33)
    shares.give_back("mallory", 100)
    assert shares.take("alice", 10)
    assert shares.total == 93


def test_a_change_between_two_pages_begins_another_list() -> None:
    tools = Tools(100)
    one = Client(tools)
    one.list(tool("a"), following="1")
    tools.changed()
    one.list(tool("b"), cursor="1")
    assert not tools.complete
    assert rules(one.call("c")) == ["contract/not-judged"]


def test_contracts_that_push_out_each_other_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.schema import store

    monkeypatch.setattr(store, "HELD", 1)
    tools = Tools(100)
    Client(tools).list({"name": "slow", "inputSchema": hostile(60), "outputSchema": hostile(59)})
    contract = tools.late("slow")
    assert contract is not None
    assert len(list(contract.compiling())) == 2


def test_a_schema_that_takes_much_memory_is_not_compiled() -> None:
    """It would push out all others, and be compiled again with every call."""
    tools = Tools(100)
    large = {"type": "object", "description": "(?=" + "x" * 250_000, "properties": hostile(13)["properties"]}
    Client(tools).list({"name": "large", "inputSchema": large})
    assert "contract/schema-size" in rules(Client(tools).call("large", p0=5))
