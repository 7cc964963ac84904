"""specs/004: the models take what the contract allows, and nothing else."""

import json
import pickle
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from response_examples import FAILURE, HINT, SUCCESS, but, without

from assay.assets.response_envelope import ERROR_CODES, ResponseEnvelope, ToolError, UpgradeHint
from assay.model.limits import TIERS
from assay.schema.compiled import compile_schema
from kit.places import ROOT
from kit.rows import rows

NAN, INFINITY = float("nan"), float("inf")

JUDGE: Final = compile_schema(ResponseEnvelope.json_schema())


# ── what is accepted ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_examples_of_the_specification_come_back_field_by_field_in_their_order(shared: Path) -> None:
    page = (shared / "specs" / "004-response-envelope.md").read_text(encoding="utf-8")
    assert [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)] == [SUCCESS, FAILURE]
    for example in (SUCCESS, FAILURE):
        envelope = ResponseEnvelope.from_dict(example)
        assert list(envelope.to_dict().items()) == list(example.items())
        assert envelope.to_json() == orjson.dumps(example)
        assert JUDGE.is_valid(example)


def test_an_integer_of_any_length_is_written_exactly() -> None:
    """Source: RFC 8259. The writer, orjson, stops at 64 bits."""
    envelope = ResponseEnvelope.from_dict(but(SUCCESS, data={"n": 2**70, "none": None}))
    assert json.loads(envelope.to_json())["data"] == {"n": 2**70, "none": None}
    detailed = replace(envelope, error=ToolError("No.", "too_large", {"n": 2**70}))
    assert json.loads(detailed.to_json()) == detailed.to_dict()


def test_data_is_written_as_it_was_when_the_envelope_was_made() -> None:
    data = {"a": 1}
    envelope = ResponseEnvelope.from_dict(but(SUCCESS, data=data))
    data["a"] = 2
    assert orjson.loads(envelope.to_json())["data"] == {"a": 1}


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────

NO_VERSIONS: Final = (
    "1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "1.0.0\n", "1.0.0.dev1", "١.0.0",
)  # fmt: skip
NO_CAPABILITIES: Final[list[Any]] = [None, "envelope-v1", {"a": 1}, [1], [True], [None], [""], [["a"]]]
NO_ERRORS: Final[list[Any]] = ["", "no", False, 0, [], {}, True]
NO_CODES: Final[list[Any]] = ["", "NOT_FOUND", "oops", 404, None, True, ["not_found"]]
NO_DETAILS: Final[list[Any]] = ["x", 1, [], False]
NO_HINTS: Final[list[Any]] = [None, {}, "x", [1], ["x"]]

CYCLE: Final[list[Any]] = []
CYCLE.append(CYCLE)

WRONG: Final[list[tuple[dict[str, Any], str]]] = [
    *((without(SUCCESS, name), name) for name in SUCCESS),
    *(
        (but(SUCCESS, **{name: value}), name)
        for name in ("tier", "tool_version", "tool_id", "request_id")
        for value in ("", None, 1, True, ["pro"])
    ),
    *((but(SUCCESS, tier=tier), "tier") for tier in ("gold", "Pro", "pro ")),
    *((but(SUCCESS, tool_version=version), "tool_version") for version in NO_VERSIONS),
    *((but(SUCCESS, duration_ms=value), "duration_ms") for value in (-1, -0.001, True, False, "27", None, [27])),
    (but(FAILURE, duration_ms=None), "duration_ms"),
    (without(but(SUCCESS, tier="enterprise"), "duration_ms"), "duration_ms"),
    *((but(SUCCESS, capabilities=value), "capabilities") for value in NO_CAPABILITIES),
    *((but(SUCCESS, error=value), "error") for value in NO_ERRORS),
    *((but(FAILURE, error=without(FAILURE["error"], name)), name) for name in ("error", "error_code")),
    (but(FAILURE, error=but(FAILURE["error"], traceback="x")), "error"),
    (but(FAILURE, error=but(FAILURE["error"], error="")), "error"),
    *((but(FAILURE, error=but(FAILURE["error"], error_code=value)), "error_code") for value in NO_CODES),
    *((but(FAILURE, error=but(FAILURE["error"], error_details=value)), "error_details") for value in NO_DETAILS),
    *((but(SUCCESS, upgrade_hints=value), "upgrade_hints") for value in NO_HINTS),
    *((but(SUCCESS, upgrade_hints=[without(HINT, name)]), name) for name in HINT),
    *((but(SUCCESS, upgrade_hints=[but(HINT, **{name: ""})]), name) for name in HINT),
    (but(SUCCESS, upgrade_hints=[but(HINT, tier="gold")]), "tier"),
    (but(SUCCESS, upgrade_hints=[but(HINT, price=1)]), "upgrade_hints"),
    (but(SUCCESS, warnings=[]), "fields"),
]
NO_JSON: Final = [
    *((but(SUCCESS, **{name: "a\ud800"}), name) for name in ("tool_id", "request_id")),
    *((but(SUCCESS, duration_ms=value), "duration_ms") for value in (NAN, INFINITY, -INFINITY)),
]
"""What is no JSON at all, and so never gets as far as a schema."""


@rows(("wrong", "name"), [*WRONG, *NO_JSON])
def test_what_the_contract_does_not_allow_is_refused_by_name_and_by_the_schema(
    wrong: dict[str, Any], name: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        ResponseEnvelope.from_dict(wrong)
    assert (wrong, name) in NO_JSON or not JUDGE.is_valid(wrong)


@rows(
    "data",
    [
        *({"a": [NAN]}, [INFINITY, "null"], {1: 2}, {"a": {1}}, object(), b"bytes", HINT.values()),
        *(UpgradeHint(**HINT), "\ud800", {"\ud800": 2**70}, CYCLE, [2**70, NAN], [2**70, object()]),
        pytest.param(1 << 20_000, id="a very long integer"),
    ],
)
def test_data_that_is_no_json_is_refused(data: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="data must be"):
        ResponseEnvelope.from_dict(but(SUCCESS, data=data))
    with pytest.raises((TypeError, ValueError), match="error_details must be"):
        ToolError("No.", "not_found", {"data": data})


@rows("value", [None, [], "x", 1, [SUCCESS]])
def test_what_is_no_object_is_no_envelope(value: Any) -> None:
    with pytest.raises(TypeError, match="object"):
        ResponseEnvelope.from_dict(value)
    assert not JUDGE.is_valid(value)


@rows(
    ("make", "name"),
    [
        (lambda: ResponseEnvelope(**without(SUCCESS, "tool_id")), "tool_id"),
        (lambda: ResponseEnvelope(**without(SUCCESS, "duration_ms")), "duration_ms"),
        (lambda: ResponseEnvelope(**but(FAILURE)), "error"),
        (lambda: ResponseEnvelope(**but(SUCCESS, upgrade_hints=[HINT])), "upgrade_hints"),
        (lambda: ToolError("", "not_found"), "error"),
        (lambda: ToolError("No.", "nope"), "error_code"),
        (lambda: UpgradeHint("f", "gold", "r"), "tier"),
        (lambda: UpgradeHint("f", "pro", 1), "reason"),  # type: ignore[arg-type]  # not everybody has a checker
    ],
)
def test_the_constructors_refuse_as_well(make: Callable[[], object], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        make()


def test_no_message_quotes_what_it_refuses() -> None:
    """Ours: a message may end up in an answer, or in a log."""
    quoted = "hunter2-and-more"
    for name in (*without(SUCCESS, "data"), "more", quoted):
        for value in ({quoted: quoted}, [quoted, {1}], -1):
            with pytest.raises((TypeError, ValueError)) as caught:
                ResponseEnvelope.from_dict(but(SUCCESS, **{name: value}, data={quoted: object()}))
            assert quoted not in str(caught.value)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_models_are_values() -> None:
    one, other = ResponseEnvelope.from_dict(FAILURE), ResponseEnvelope.from_dict(FAILURE)
    assert one == other
    assert one != replace(one, request_id="another")
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - our own
    assert isinstance(one.capabilities, tuple)
    with pytest.raises(FrozenInstanceError):
        one.tier = "pro"  # type: ignore[misc]  # it is frozen
    assert not hasattr(one, "__dict__")


def test_the_words_of_the_contract_are_these_and_the_page_has_every_code_with_its_meaning() -> None:
    assert TIERS == ("community", "pro", "enterprise")
    assert list(ERROR_CODES) == [
        "invalid_argument", "invalid_path", "forbidden", "not_found", "timeout", "too_large", "resource_exhausted",
        "not_implemented", "upgrade_required", "dependency_unavailable", "internal_error",
    ]  # fmt: skip
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    assert [code for code, meaning in ERROR_CODES.items() if f"| `{code}` | {meaning} |\n" not in page] == []
