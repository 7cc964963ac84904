"""The rule that stops a message is the first one: in verdicts, answers, the journal, on stderr and in `assay check`."""

from assay.base.limits import Limits
from assay.base.verdict import Verdict
from kit.talk import SEARCH, Talk, answer, call, result, rules

BROKEN = {"name": "bad", "inputSchema": {"type": "strnig"}}


def stopped() -> Verdict:
    """A call of a quarantined tool of a server that did not declare tools: the second is only reported."""
    talk = Talk().opened(server={})
    talk.client({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    talk.server(result(1, {"tools": [SEARCH, BROKEN]}))
    return talk.client(call(3, "bad", {}))


def test_the_rule_that_stops_is_the_first_of_a_verdict_and_of_its_answer() -> None:
    verdict = stopped()
    assert rules(verdict) == ["contract/set-aside", "protocol/capability"]
    noted = answer(verdict)["error"]["data"]["violations"]
    assert [each["rule"] for each in noted] == ["contract/set-aside", "protocol/capability"]


def test_a_limit_on_the_violations_never_hides_the_rule_that_stops() -> None:
    talk = Talk(limits=Limits(violations=1)).opened(server={})
    talk.client({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    talk.server(result(1, {"tools": [SEARCH]}))
    verdict = talk.client(call(2, "search", {"words": 5}))
    assert (rules(verdict), verdict.more, verdict.accepted) == (["contract/input"], 1, False)
