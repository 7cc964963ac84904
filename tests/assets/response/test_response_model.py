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

from assay.assets.response import ERROR_CODES, TIERS, ResponseEnvelope, ToolError, UpgradeHint
from assay.engine.compiled import compile_schema
from kit.places import ROOT
from kit.rows import rows

NAN, INFINITY = float("nan"), float("inf")

JUDGE: Final = compile_schema(ResponseEnvelope.json_schema())

examples = rows("example", [SUCCESS, FAILURE], ids=["success", "failure"])


# ── the examples of the specification ────────────────────────────────────────────────────────────────────────────────


def test_the_examples_here_are_those_of_the_specification(shared: Path) -> None:
    page = (shared / "specs" / "004-response-envelope.md").read_text(encoding="utf-8")
    assert [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)] == [SUCCESS, FAILURE]


@examples
def test_an_example_comes_back_field_by_field_in_its_order(example: dict[str, Any]) -> None:
    envelope = ResponseEnvelope.from_dict(example)
    assert list(envelope.to_dict().items()) == list(example.items())
    assert envelope.to_json() == orjson.dumps(example)
    assert ResponseEnvelope.from_dict(orjson.loads(envelope.to_json())) == envelope


@examples
def test_an_example_fits_the_schema(example: dict[str, Any]) -> None:
    assert JUDGE.is_valid(example)


# ── what is accepted ─────────────────────────────────────────────────────────────────────────────────────────────────


ANY_JSON: Final[dict[str, Any]] = {
    "null": None, "false": False, "text": "null", "number": 1.5, "array": [None], "empty": {},
    "deep": {"a": [{"b": [[[]]]}]}, "integer": 2**63,
}  # fmt: skip


@rows(
    "good",
    [
        pytest.param(but(SUCCESS, tier="enterprise"), id="enterprise"),
        pytest.param(without(FAILURE, "duration_ms"), id="community-without-a-duration"),
        pytest.param(but(SUCCESS, duration_ms=0), id="no-time-at-all"),
        pytest.param(but(SUCCESS, duration_ms=0.25), id="fraction"),
        pytest.param(but(SUCCESS, capabilities=[]), id="no-capabilities"),
        pytest.param(but(SUCCESS, tool_version="1.0.0-rc.1+build.5"), id="version-with-labels"),
        pytest.param(but(SUCCESS, tool_version="0.0.0--"), id="version-with-dashes"),
        pytest.param(but(SUCCESS, request_id="ü 1"), id="any-text-is-a-request-id"),
        pytest.param(but(SUCCESS, upgrade_hints=[HINT, HINT]), id="hints"),
        pytest.param(but(FAILURE, error=without(FAILURE["error"], "error_details")), id="error-without-details"),
        pytest.param(but(FAILURE, error=but(FAILURE["error"], error_details={"at": [1, None]})), id="details"),
        *(pytest.param(but(FAILURE, error={"error": "x", "error_code": code}), id=code) for code in ERROR_CODES),
        *(
            pytest.param(but(SUCCESS, data=data), id=f"data-{name}")
            for name, data in ANY_JSON.items()
        ),
    ],
)  # fmt: skip
def test_what_the_contract_allows_is_taken(good: dict[str, Any]) -> None:
    envelope = ResponseEnvelope.from_dict(good)
    assert JUDGE.is_valid(good)
    assert ResponseEnvelope.from_dict(envelope.to_dict()) == envelope
    assert orjson.loads(envelope.to_json()) == envelope.to_dict()


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

WRONG: Final[list[tuple[str, dict[str, Any], str]]] = [
    *((f"no-{name}", without(SUCCESS, name), name) for name in SUCCESS),
    *(
        (f"{name}-{label}", but(SUCCESS, **{name: value}), name)
        for name in ("tier", "tool_version", "tool_id", "request_id")
        for label, value in {"empty": "", "null": None, "number": 1, "bool": True, "array": ["pro"]}.items()
    ),
    *((f"{name}-surrogate", but(SUCCESS, **{name: "a\ud800"}), name) for name in ("tool_id", "request_id")),
    ("tier-unknown", but(SUCCESS, tier="gold"), "tier"),
    ("tier-spelt-otherwise", but(SUCCESS, tier="Pro"), "tier"),
    ("tier-space", but(SUCCESS, tier="pro "), "tier"),
    *(
        (f"version-{version}", but(SUCCESS, tool_version=version), "tool_version")
        for version in NO_VERSIONS
    ),
    *(
        (f"duration-{value}", but(SUCCESS, duration_ms=value), "duration_ms")
        for value in (-1, -0.001, NAN, INFINITY, -INFINITY, True, False, "27", None, [27])
    ),
    ("duration-null-in-community", but(FAILURE, duration_ms=None), "duration_ms"),
    ("no-duration-in-enterprise", without(but(SUCCESS, tier="enterprise"), "duration_ms"), "duration_ms"),
    *(
        (f"capabilities-{value!r}", but(SUCCESS, capabilities=value), "capabilities")
        for value in NO_CAPABILITIES
    ),
    *((f"error-{value!r}", but(SUCCESS, error=value), "error") for value in NO_ERRORS),
    ("error-without-text", but(FAILURE, error=without(FAILURE["error"], "error")), "error"),
    ("error-without-code", but(FAILURE, error=without(FAILURE["error"], "error_code")), "error_code"),
    ("error-with-more", but(FAILURE, error=but(FAILURE["error"], traceback="x")), "error"),
    ("error-empty-text", but(FAILURE, error=but(FAILURE["error"], error="")), "error"),
    *(
        (f"code-{value!r}", but(FAILURE, error=but(FAILURE["error"], error_code=value)), "error_code")
        for value in NO_CODES
    ),
    *(
        (f"details-{value!r}", but(FAILURE, error=but(FAILURE["error"], error_details=value)), "error_details")
        for value in NO_DETAILS
    ),
    *((f"hints-{value!r}", but(SUCCESS, upgrade_hints=value), "upgrade_hints") for value in NO_HINTS),
    *((f"hint-no-{name}", but(SUCCESS, upgrade_hints=[without(HINT, name)]), name) for name in HINT),
    *((f"hint-empty-{name}", but(SUCCESS, upgrade_hints=[but(HINT, **{name: ""})]), name) for name in HINT),
    ("hint-tier-unknown", but(SUCCESS, upgrade_hints=[but(HINT, tier="gold")]), "tier"),
    ("hint-with-more", but(SUCCESS, upgrade_hints=[but(HINT, price=1)]), "upgrade_hints"),
    ("one-field-more", but(SUCCESS, warnings=[]), "fields"),
]  # fmt: skip


@rows(("wrong", "name"), [pytest.param(wrong, name, id=label) for label, wrong, name in WRONG])
def test_what_the_contract_does_not_allow_is_refused_by_name(wrong: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        ResponseEnvelope.from_dict(wrong)


@rows(
    "wrong",
    [
        pytest.param(wrong, id=label)
        for label, wrong, _ in WRONG
        if not any(word in label for word in ("surrogate", "nan", "inf"))
    ],
)
def test_the_schema_refuses_the_same(wrong: dict[str, Any]) -> None:
    """But for what is no JSON at all, and so never gets as far as a schema."""
    assert not JUDGE.is_valid(wrong)


@rows(
    "data",
    [
        pytest.param({"a": [NAN]}, id="nan"),
        pytest.param([INFINITY, "null"], id="infinity"),
        pytest.param({1: 2}, id="number-as-key"),
        pytest.param({"a": {1}}, id="set"),
        pytest.param(object(), id="object"),
        pytest.param(b"bytes", id="bytes"),
        pytest.param(HINT.values(), id="view"),
        pytest.param(UpgradeHint(**HINT), id="dataclass"),
        pytest.param("\ud800", id="surrogate"),
        pytest.param({"\ud800": 2**70}, id="surrogate-as-key"),
        pytest.param(CYCLE, id="cycle"),
        pytest.param(1 << 20_000, id="very-long-integer"),
        pytest.param([2**70, NAN], id="long-integer-and-nan"),
        pytest.param([2**70, object()], id="long-integer-and-object"),
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
        pytest.param(lambda: ResponseEnvelope(**without(SUCCESS, "tool_id")), "tool_id", id="missing"),
        pytest.param(lambda: ResponseEnvelope(**without(SUCCESS, "duration_ms")), "duration_ms", id="no-duration"),
        pytest.param(lambda: ResponseEnvelope(**but(FAILURE)), "error", id="error-that-is-a-dict"),
        pytest.param(lambda: ResponseEnvelope(**but(SUCCESS, upgrade_hints=[HINT])), "upgrade_hints", id="hint-dict"),
        pytest.param(lambda: ToolError("", "not_found"), "error", id="empty-error"),
        pytest.param(lambda: ToolError("No.", "nope"), "error_code", id="unknown-code"),
        pytest.param(lambda: UpgradeHint("f", "gold", "r"), "tier", id="unknown-tier"),
        pytest.param(lambda: UpgradeHint("f", "pro", 1), "reason", id="number-as-reason"),  # type: ignore[arg-type]  # not everybody has a checker
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


def test_the_words_of_the_contract_are_these() -> None:
    assert TIERS == ("community", "pro", "enterprise")
    assert list(ERROR_CODES) == [
        "invalid_argument", "invalid_path", "forbidden", "not_found", "timeout", "too_large", "resource_exhausted",
        "not_implemented", "upgrade_required", "dependency_unavailable", "internal_error",
    ]  # fmt: skip
    assert all(meaning.endswith(".") for meaning in ERROR_CODES.values())


def test_the_page_lists_every_code_with_its_meaning() -> None:
    page = (ROOT / "docs" / "response-envelope.md").read_text(encoding="utf-8")
    for code, meaning in ERROR_CODES.items():
        assert f"| `{code}` | {meaning} |\n" in page
