"""A mistake of ours, wherever it is: each client that waits gets one error, the log says why, and the guard goes on."""

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from assay.guard import internal_errors
from assay.guard.id_map import IdMap
from assay.guard.terms import Mode
from assay.spec.revisions import LATEST
from kit.hosted import Hosted, host
from kit.http_client import call, modern, request
from kit.rows import rows

BOTH_MODES = rows("mode", ["audit", "enforce"])
Opened = Callable[[Hosted], Awaitable[dict[str, Any]]]


async def in_session(hosted: Hosted) -> dict[str, Any]:
    return {**await hosted.open(), "accept": "application/json"}


async def without_session(_: Hosted) -> dict[str, Any]:
    return {}


EITHER = rows("opened", [in_session, without_session])


async def called(hosted: Hosted, headers: dict[str, Any]) -> Any:
    """The answer to a call."""
    message = call(7, "search", {"words": "sea"}, "" if headers else LATEST)
    answer = json.loads((await hosted.post(message, headers or modern(message))).body)
    assert answer["id"] == 7
    return answer


@pytest.fixture
def errors(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged of mistakes."""
    caplog.set_level(logging.ERROR, "assay")
    return caplog


def forget(errors: pytest.LogCaptureFixture) -> None:
    """Nothing is logged so far; each mistake is logged once."""
    internal_errors._logged.clear()
    errors.clear()


def test_an_answer_that_cannot_be_routed_fails_its_request_only(errors: pytest.LogCaptureFixture) -> None:
    """A mistake in the map of ids: who has asked is still known by the number in the answer."""

    def breaks(*_: Any) -> Any:
        raise ZeroDivisionError("a mistake")

    async def scenario(hosted: Hosted) -> None:
        await hosted.ask(request(1, "tools/list", {}, LATEST))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(IdMap, "answer", breaks)
            assert (await called(hosted, {}))["error"]["code"] == -32603
        assert "result" in await called(hosted, {})

    forget(errors)
    host(scenario)
    assert len(errors.records) == 1


# ── odd messages, which no mistake comes of ──────────────────────────────────────────────────────────────────────────

SHAPES: list[Any] = [[], [1], "x", 5, None, {"progressToken": [1]}, {"requestId": {}}, {"_meta": [1]}]
PARAMS: list[dict[str, Any]] = [{}, *({"params": each} for each in SHAPES)]
SAYS = ["notifications/progress", "notifications/cancelled", "notifications/message", "roots/list", "nope"]
ASKS, NOTES = ["prompts/list", "nope"], ["notifications/cancelled", "notifications/progress", "notifications/nope"]


@BOTH_MODES
@EITHER
def test_whatever_either_side_says_no_child_ends_for_it_and_no_mistake_is_made(
    errors: pytest.LogCaptureFixture, mode: Mode, opened: Opened
) -> None:
    odd = [
        {"jsonrpc": "2.0", "method": method, **ident, **params}
        for method in SAYS
        for ident in ({}, {"id": 5}, {"id": [5]})
        for params in PARAMS
    ]
    on = {**{each: [["result", {}]] for each in ASKS}, **{each: [] for each in NOTES}, "roots/list": []}
    on["tools/list"] = [*(["say", each] for each in odd), ["good"]]

    async def scenario(hosted: Hosted) -> None:
        session = await opened(hosted)
        good = request("good", "tools/list", {"_meta": {"progressToken": "t"}}, "" if session else LATEST)
        for method in [*ASKS, *NOTES]:
            for params in PARAMS:
                message = {"jsonrpc": "2.0", **({"id": 3} if method in ASKS else {}), "method": method, **params}
                headers = session or {**modern(good), "mcp-method": method}
                assert (await hosted.post(message, headers, x_principal="anonymous")).status < 500
        for _ in range(2):
            body = (await hosted.post(good, session or modern(good))).body
            assert b'"id":"good",' in body
            assert b'"inputSchema"' in body
        assert [each.is_over for each in hosted.children] == [False]

    forget(errors)
    host(scenario, mode, on=on)
    assert not errors.records
