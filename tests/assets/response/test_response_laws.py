"""Laws: what is written comes back; what was sent in does not."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson
from hypothesis import given
from hypothesis import strategies as st
from response_examples import failure

from assay.assets.enveloper import Enveloper
from assay.assets.response_envelope import ERROR_CODES, ResponseEnvelope, ToolError, UpgradeHint
from assay.model.limits import TIERS
from assay.schema.compiled import compile_schema
from kit.laws import law

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
tiers = st.sampled_from(TIERS)
versions = st.builds("{}.{}.{}{}".format, *[st.integers(0, 99)] * 3, st.sampled_from(["", "-rc.1", "+b", "-0-x+1.y"]))
errors = st.builds(
    ToolError, texts, st.sampled_from(list(ERROR_CODES)), st.none() | st.dictionaries(texts, values, max_size=3)
)
hints = st.builds(UpgradeHint, texts, tiers, texts)


@st.composite
def envelopes(draw: st.DrawFn) -> ResponseEnvelope:
    tier = draw(tiers)
    durations = st.integers(0, 2**53) | st.floats(0, allow_nan=False, allow_infinity=False)
    return ResponseEnvelope(
        tier=tier,
        tool_version=draw(versions),
        tool_id=draw(texts),
        request_id=draw(texts),
        capabilities=draw(st.lists(texts, max_size=3)),
        duration_ms=draw(durations | st.none() if tier == "community" else durations),
        error=draw(st.none() | errors),
        upgrade_hints=draw(st.lists(hints, max_size=2)),
        data=draw(values),
    )


JUDGE: Final = compile_schema(ResponseEnvelope.json_schema())


@law(300)
@given(envelopes())
def test_what_is_written_comes_back(envelope: ResponseEnvelope) -> None:
    assert ResponseEnvelope.from_dict(orjson.loads(envelope.to_json())) == envelope
    assert envelope.to_json() == orjson.dumps(envelope.to_dict())
    assert JUDGE.is_valid(envelope.to_dict())


@law(300)
@given(envelopes(), st.data())
def test_the_schema_and_the_model_agree_on_any_change(envelope: ResponseEnvelope, data: st.DataObject) -> None:
    changed = envelope.to_dict()
    name = data.draw(st.sampled_from([*changed, "duration_ms", "more"]))
    if data.draw(st.booleans()):
        changed[name] = data.draw(values | tiers)
    else:
        changed.pop(name, None)
    try:
        ResponseEnvelope.from_dict(changed)
    except (TypeError, ValueError):
        assert not JUDGE.is_valid(changed)
    else:
        assert JUDGE.is_valid(changed)


# ── nothing that was sent in comes back ──────────────────────────────────────────────────────────────────────────────

# Letters that make words which have a run in common with our own sentences are as welcome as any.
secrets = st.text(st.sampled_from("aeinost .:/=()\n\t'\"é漢_-0123"), min_size=1, max_size=30) | texts
arguments = st.recursive(
    secrets | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(secrets, inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=8,
)

Quote = Callable[[str], str]
quotes: Final[list[Quote]] = [
    str, repr, ascii, str.upper, str.title, str.strip,
    lambda text: " ".join(text.split()),
    lambda text: text[1:], lambda text: text[: len(text) // 2 + 1], lambda text: f"{text[:8]}…",
    lambda text: f"cannot do {text} here", lambda text: f"it is:{text}", lambda text: orjson.dumps(text).decode(),
]  # fmt: skip

GENERIC: Final = {*ERROR_CODES.values(), "The tool returned a result that is not JSON."}
"""Constant sentences: they can have words in common with an argument, and reveal nothing of it."""


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *strings_in(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from strings_in(inner)
    elif not isinstance(value, bool) and value is not None:
        yield str(value)


def leaks(error: ToolError, sent: Any) -> set[str]:
    """The runs of four characters that *error* has in common with any string in *sent*."""
    if error.error in GENERIC:
        return set()
    folded = error.error.casefold()
    runs = (string[at : at + 4] for string in strings_in(sent) for at in range(len(string) - 3))
    return {run for run in runs if run in error.error or run.casefold() in folded}


def together(text: str) -> Exception:
    return ExceptionGroup(text, [ValueError(text)])


def fail(kind: Callable[[str], Exception], text: str, secret: str) -> None:
    error = kind(text)
    error.add_note(secret)
    raise error from ValueError(secret)


@law(300)
@given(
    st.data(),
    st.lists(arguments, min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["code", "name", "x", "ctx"]), arguments, max_size=3),
    st.sampled_from([ValueError, TypeError, FileNotFoundError, PermissionError, TimeoutError, KeyError, RuntimeError,
                     NotImplementedError, MemoryError, OSError, together]),
    st.sampled_from(quotes),
    st.sampled_from(["raise", "payload", "nested payload", "envelope"]),
)  # fmt: skip
def test_nothing_of_any_argument_is_in_an_error(
    data: st.DataObject,
    args: list[Any],
    kwargs: dict[str, Any],
    kind: Callable[[str], Exception],
    quote: Quote,
    way: str,
) -> None:
    secret = data.draw(st.sampled_from(sorted({*strings_in(args), *strings_in(kwargs)} or {"none"})))
    text = quote(secret)

    async def tool(*args: Any, **kwargs: Any) -> Any:
        if way == "raise":
            fail(kind, text, secret)
        if way == "envelope":
            error = ToolError(text or "-", "not_found", {"code": secret})
            return ResponseEnvelope(
                tier="community", tool_version="1.0.0", tool_id="t", request_id="r", capabilities=[], error=error
            )
        name = data.draw(st.sampled_from(["error", "reason", "detail", "msg", "message"]))
        return {"ok": False, name: text if way == "payload" else {"message": text, "details": secret}}

    error = failure(tool, *args, **kwargs)
    assert not leaks(error, [args, kwargs])
    assert error.error_details is None


@law(300)
@given(st.dictionaries(texts, arguments, min_size=1, max_size=3), st.data(), st.sampled_from(quotes))
def test_nothing_of_the_arguments_of_a_request_is_in_an_error(
    sent: dict[str, Any], data: st.DataObject, quote: Quote
) -> None:
    text = quote(data.draw(st.sampled_from(sorted(strings_in(sent)))))
    for given_ in (sent, orjson.dumps(sent)) if _is_json(sent) else (sent,):
        error = Enveloper("t", "1.0.0").run(lambda: fail(ValueError, text, text), tier="pro", arguments=given_).error
        assert error is not None
        assert not leaks(error, sent)


def _is_json(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True
