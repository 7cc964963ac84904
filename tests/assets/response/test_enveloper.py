"""Calls in envelopes: plain and async functions, ids, durations, and what becomes of a failure."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from response_examples import FAILURE, HINT, SUCCESS, answer, failure, wrapped

from assay.assets.enveloper import Enveloper, envelop_tool_function
from assay.assets.response_envelope import ERROR_CODES, ResponseEnvelope, ToolError, UpgradeHint
from kit.rows import rows


def raising(error: BaseException) -> Callable[..., Any]:
    def fn(*_: Any, **__: Any) -> None:
        raise error

    return fn


def giving(data: Any) -> Callable[..., Any]:
    return lambda *_, **__: data


def tool(name: str, /, limit: int = 3, *rest: str, flag: bool = False, **more: str) -> list[Any]:
    """Gives back what it got."""
    return [name, limit, list(rest), flag, more]


async def waiting_tool(name: str, ctx: Any = None) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"name": name}


class Tools:
    def later(self, name: str) -> Awaitable[dict[str, str]]:
        return waiting_tool(name)

    def __call__(self, name: str) -> str:
        return name


# ── the wrapper ──────────────────────────────────────────────────────────────────────────────────────────────────────


@rows("fn", [tool, waiting_tool, Tools().later, Tools(), partial(tool, "x"), partial(waiting_tool, ctx=None)])
def test_signature_name_and_documentation_stay_the_same(fn: Callable[..., Any]) -> None:
    assert inspect.signature(wrapped(fn)) == inspect.signature(fn)
    assert inspect.iscoroutinefunction(wrapped(fn))
    assert (wrapped(tool).__name__, wrapped(tool).__doc__) == ("tool", tool.__doc__)


def test_arguments_arrive_as_they_were_given_or_are_invalid() -> None:
    assert answer(tool, "a", 1, "b", "c", flag=True, x="y").data == ["a", 1, ["b", "c"], True, {"x": "y"}]
    error = failure(lambda name: name, s3cr3t_key="s3cr3t")
    assert error == ToolError(ERROR_CODES["invalid_argument"], "invalid_argument")
    assert failure(lambda name: name).error_code == "invalid_argument"


@rows("fn", [waiting_tool, partial(waiting_tool, ctx=None), Tools().later, lambda name: {"name": name}])
def test_plain_and_async_functions_give_an_envelope(fn: Callable[..., Any]) -> None:
    found = answer(fn, "a")
    assert (found.tier, found.tool_id, found.tool_version) == ("pro", "a_tool", "1.0.0")
    assert (found.capabilities, found.error, found.upgrade_hints) == (("envelope-v1",), None, ())
    assert found.data == {"name": "a"}


def test_a_bad_tool_is_found_out_when_it_is_wrapped() -> None:
    with pytest.raises(ValueError, match="tool_version"):
        envelop_tool_function(tool, tool_id="a", tool_version="one", tier_getter=lambda: "pro")


def broken() -> str:
    raise ValueError("no licence server")


@rows("tier", [broken, lambda: "gold", lambda: None, lambda: ""])
def test_without_a_tier_nothing_is_run(tier: Callable[[], Any]) -> None:
    """Ours: an envelope has to name a tier, and the least is the only one that gives nothing away."""
    envelope = asyncio.run(wrapped(lambda: pytest.fail("was run"), tier)())
    assert envelope.tier == "community"
    assert envelope.error == ToolError(ERROR_CODES["internal_error"], "internal_error")


# ── request ids ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Raises:
    """As some contexts do outside of a request."""

    correlation_id = "c-1"

    @property
    def request_id(self) -> str:
        raise ValueError("no request")


@rows(
    ("ctx", "request_id"),
    [
        *(
            (made({name: "r-1"}), "r-1")
            for name in ("request_id", "requestId", "correlation_id", "correlationId")
            for made in (dict, lambda each: SimpleNamespace(**each))
        ),
        ({"request_id": 7}, "7"),
        ({"request_id": 0}, "0"),
        ({"request_id": UUID(int=1)}, str(UUID(int=1))),
        ({"request_id": "", "correlationId": "c"}, "c"),
        ({"request_id": None, "correlation_id": "c"}, "c"),
        ({"request_id": "r", "correlation_id": "c"}, "r"),
        (Raises(), "c-1"),
    ],
)
def test_the_request_id_is_that_of_the_context(ctx: Any, request_id: str) -> None:
    assert answer(waiting_tool, "a", ctx=ctx).request_id == request_id
    assert answer(waiting_tool, "a", ctx).request_id == request_id
    assert answer(giving(None), ctx=ctx).request_id == request_id


@rows(
    "ctx", [None, {}, object(), 7, {"request_id": True}, {"request_id": ["r"]}, {"request_id": "\ud800"}, {"id": "r"}]
)
def test_without_an_id_in_the_context_one_is_made(ctx: Any) -> None:
    one, other = (answer(waiting_tool, "a", ctx).request_id for _ in range(2))
    assert one != other
    assert (UUID(one).version, UUID(one).hex) == (4, one)
    # Another argument is no context.
    assert answer(giving(None), {"request_id": "r-1"}).request_id != "r-1"


# ── the synchronous core ─────────────────────────────────────────────────────────────────────────────────────────────


def ticking(*times: float) -> Callable[[], float]:
    ticks: Iterator[float] = iter(times)
    return lambda: next(ticks)


def test_clock_and_ids_can_be_given() -> None:
    numbers = count(1)
    enveloper = Enveloper(
        "t", "1.0.0", ["a", "b"], clock=ticking(1.0, 1.25, 7, 7), new_id=lambda: f"id-{next(numbers)}"
    )
    assert enveloper.run(lambda: 1, tier="enterprise").to_dict() == {
        "tier": "enterprise",
        "tool_version": "1.0.0",
        "tool_id": "t",
        "request_id": "id-1",
        "capabilities": ["a", "b"],
        "duration_ms": 250.0,
        "error": None,
        "upgrade_hints": [],
        "data": 1,
    }
    again = enveloper.run(raising(ValueError("a b")), tier="community")
    assert (again.request_id, again.duration_ms) == ("id-2", 0.0)
    # A clock that is wrong does not break the contract.
    for end in (0.5, float("nan")):
        wrong = Enveloper("t", "1.0.0", clock=ticking(1.0, end)).run(lambda: 1, tier="pro")
        assert ResponseEnvelope.from_dict(wrong.to_dict()).duration_ms == 0.0


@rows(
    ("wrong", "name"),
    [({"tier": "gold"}, "tier"), ({"request_id": ""}, "request_id"), ({"request_id": 1}, "request_id")],
)
def test_what_no_envelope_could_carry_is_refused_before_anything_is_run(wrong: dict[str, Any], name: str) -> None:
    given: dict[str, Any] = {"tier": "pro", "request_id": "r", **wrong}
    with pytest.raises((TypeError, ValueError), match=name):
        Enveloper("t", "1.0.0").run(lambda: pytest.fail("was run"), **given)


# ── what a tool gives ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Finding:
    line: int


class Model:
    """As pydantic's are."""

    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"mode": mode, "ok": True}


@rows(
    ("given", "data"),
    [
        (None, None),
        ([1, None], [1, None]),
        ((1, 2), (1, 2)),
        (False, False),
        (Finding(3), {"line": 3}),
        (Model(), {"mode": "json", "ok": True}),
        (UpgradeHint("a", "pro", "b"), {"feature": "a", "tier": "pro", "reason": "b"}),
        # What does not say that it failed did not.
        *((each, each) for each in ({"success": True, "error": "x"}, {"ok": 0}, {"success": None}, {"error": "x"})),
    ],
)
def test_what_a_tool_gives_is_data(given: Any, data: Any) -> None:
    assert (answer(lambda: given).data, answer(lambda: given).error) == (data, None)


@rows("given", [object(), {1}, {"a": float("nan")}, b"x", {1: 2}, Finding, iter([])])
def test_a_result_that_is_no_json_is_the_tools_own_failure(given: Any) -> None:
    envelope = answer(lambda: given)
    assert envelope.error == ToolError("The tool returned a result that is not JSON.", "internal_error")
    assert envelope.data is None


def test_an_envelope_that_a_tool_made_is_passed_on_but_may_not_say_too_much_either() -> None:
    for inner in map(ResponseEnvelope.from_dict, (SUCCESS, FAILURE)):
        assert answer(giving(inner)) is inner
    assert answer(giving(inner), "/missing.py").error == ToolError(ERROR_CODES["not_found"], "not_found")
    detailed = replace(inner, error=ToolError("No such thing.", "not_found", {"code": "x"}))
    assert answer(giving(detailed)).error == ToolError("No such thing.", "not_found")


# ── exceptions ───────────────────────────────────────────────────────────────────────────────────────────────────────


class MuteError(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


@rows(
    ("error", "code"),
    [
        (FileNotFoundError(2, "No such file", "/x"), "not_found"),
        (PermissionError("no"), "forbidden"),
        (TimeoutError(), "timeout"),
        (ValueError("no"), "invalid_argument"),
        (TypeError("no"), "invalid_argument"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), "invalid_argument"),
        (MuteError(), "invalid_argument"),
        (NotImplementedError(), "not_implemented"),
        (MemoryError(), "resource_exhausted"),
        (OSError("no"), "internal_error"),
        (ConnectionRefusedError(), "internal_error"),
        (RecursionError(), "internal_error"),
        (StopIteration(), "internal_error"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_an_exception_becomes_a_code(error: Exception, code: str) -> None:
    """Source: design, Public names."""

    async def later() -> None:
        raise error

    for fn in (raising(error), later):
        found = failure(fn)
        assert (found.error_code, found.error_details, answer(fn).data) == (code, None, None)


@rows("error", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_what_ends_the_program_or_the_task_goes_through(error: BaseException) -> None:
    with pytest.raises(type(error)):
        Enveloper("t", "1.0.0").run(raising(error), tier="pro")

    async def later() -> None:
        raise error

    for fn in (raising(error), later):
        with pytest.raises(type(error)):
            wrapped(fn)().send(None)


def test_an_unforeseen_failure_is_logged_by_kind_and_place_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "assay"):
        failure(raising(RuntimeError("s3cr3t")), "code")
        failure(raising(ValueError("expected")), "code")
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("tool a_tool: RuntimeError at test_enveloper.py:")
    assert caplog.records[0].exc_info is None


# ── payloads that report their own failure ───────────────────────────────────────────────────────────────────────────


def test_the_failure_of_the_specification_is_mirrored_as_there() -> None:
    """Source: specs/004, Error response."""
    envelope = Enveloper("extract_code", "3.2.8", clock=ticking(0, 0.003)).run(
        lambda: FAILURE["data"], tier="community", request_id=FAILURE["request_id"], arguments={}
    )
    assert envelope.to_dict() == FAILURE


@rows(
    ("data", "code"),
    [
        ({"success": False}, "internal_error"),
        ({"ok": True, "success": False}, "internal_error"),
        ({"ok": False, "reason": "not_found"}, "not_found"),
        ({"ok": False, "reason": "validation_failed", "errors": [{"path": "", "msg": "no"}]}, "invalid_argument"),
        ({"ok": False, "reason": "backend_error", "status": 500, "detail": "internal error"}, "dependency_unavailable"),
        ({"ok": False, "reason": "unsupported", "detail": "tool not implemented"}, "not_implemented"),
        ({"success": False, "error_code": "too_large", "error": "Not found"}, "too_large"),
        ({"success": False, "error": {"error_code": "timeout", "message": "It was slow"}}, "timeout"),
        ({"success": False, "error": {"code": -32603, "message": "odd"}}, "internal_error"),
        ({"success": False, "error": "Permission denied by the host"}, "forbidden"),
        ({"success": False, "error": "The request timed out"}, "timeout"),
        ({"success": False, "error_code": "no_such_code", "error": None}, "internal_error"),
        ({"success": False, "error_code": ["not_found"], "error": 7}, "internal_error"),
    ],
)
def test_a_reported_failure_is_mirrored_and_kept(data: dict[str, Any], code: str) -> None:
    """Source: specs/004, Error Model; the reasons are those of specs/001, section 6."""
    assert failure(giving(data)).error_code == code
    assert answer(giving(data)).data == data


@rows(
    ("data", "text"),
    [
        ({"ok": False, "reason": "unsupported", "detail": "tool not implemented"}, "tool not implemented"),
        ({"ok": False, "error": {"message": "It was slow", "code": "timeout"}}, "It was slow"),
        ({"ok": False, "msg": "The disk is full"}, "The disk is full"),
        ({"ok": False, "error": "line\nbreak in it", "detail": "The disk is full"}, "The disk is full"),
        ({"ok": False, "reason": "not_found"}, ERROR_CODES["not_found"]),
        ({"ok": False, "reason": "not_found", "detail": "no file main.py"}, ERROR_CODES["not_found"]),
    ],
)
def test_the_text_of_a_reported_failure_is_shown_if_it_can_be(data: dict[str, Any], text: str) -> None:
    assert failure(giving(data), "main.py") == ToolError(text, failure(giving(data)).error_code)


TAKES_LONG = HINT | {"reason": "It takes long."}


def test_hints_come_along_with_a_reported_failure_and_do_not_quote_the_caller_either() -> None:
    hints: list[tuple[Any, int]] = [([TAKES_LONG], 1), ([TAKES_LONG] * 2, 2), ([TAKES_LONG, {}], 0), ("x", 0), ([1], 0)]
    for given, number in hints:
        data = {"success": False, "error_code": "upgrade_required", "upgrade_hints": given}
        assert answer(giving(data)).upgrade_hints == (UpgradeHint(**TAKES_LONG),) * number
    quoting = {"ok": False, "upgrade_hints": [HINT | {"reason": "No main.py in this tier."}]}
    assert answer(giving(quoting), "main.py").upgrade_hints == (UpgradeHint(**HINT),)
