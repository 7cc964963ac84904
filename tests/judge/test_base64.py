"""Data of images, audio and blobs that is not Base64: found in every place and direction, and in bounded time."""

import base64
from typing import Any

from assay.schema.drafts import is_base64
from assay.spec.revisions import REVISIONS
from kit.rows import rows
from kit.stateless_talk import COMPLETE, HINTS, META
from kit.talk import Talk, call, good, request, result, rules

GOOD = base64.b64encode(bytes(range(256))).decode()
BAD = "data:image/png;base64,iVBORw0KGgo="


OTHERS = {
    "a data URI": BAD,
    "no padding": "QQ",
    "short padding": "QQ=",
    "long padding": "Q===",
    "only padding": "====",
    "padding within": "QQ==QQ==",
    "the alphabet of URLs": "-_-_",
    "a line break": "QUJD\nQUJ",
    "line breaks at the end": "QUJDQUJD\r\n\r\n",
    "not ASCII": "QUJ\u00e9",
    "text": "not base64 at all!!!",
    "the last character": "A" * 199_999 + "!",
}


def test_standard_base64_is_recognised_and_nothing_else() -> None:
    assert [text for text in ("", "QQ==", "QUI=", "QUJD", GOOD, "+/+/", "A" * 200_000) if not is_base64(text)] == []
    assert [name for name, text in OTHERS.items() if is_base64(text)] == []


def image(data: str) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": "image/png"}


def audio(data: str) -> dict[str, Any]:
    return {"type": "audio", "data": data, "mimeType": "audio/wav"}


def blob(data: str) -> dict[str, Any]:
    return {"uri": "file:///a.bin", "blob": data}


def embedded(data: str) -> dict[str, Any]:
    return {"type": "resource", "resource": blob(data)}


def heard_result(revision: str, method: str, params: dict[str, Any], value: dict[str, Any]) -> Any:
    """The verdict on a result of the server."""
    talk = Talk(revision=revision)
    if revision == "2026-07-28":
        params = {**params, "_meta": META}
        value = {**value, **COMPLETE, **(HINTS if method == "resources/read" else {})}
    good(talk.client(request(1, method, params)))
    return talk.server(result(1, value))


CALL: tuple[str, dict[str, Any]] = ("tools/call", {"name": "draw", "arguments": {}})
PROMPT: tuple[str, dict[str, Any]] = ("prompts/get", {"name": "draw"})


@rows("revision", REVISIONS)
@rows("make", [image, audio, embedded])
@rows("asked", [CALL, PROMPT], ids=["call", "prompt"])
def test_content_of_a_result_that_is_not_base64_is_reported(revision: str, make: Any, asked: tuple[str, Any]) -> None:
    """schema: `data` and `blob` have the format `byte`, "base64-encoded"."""
    if make is audio and revision == "2024-11-05":
        return
    for data, expected in ((GOOD, []), (BAD, ["protocol/base64"])):
        item = make(data)
        value = {"content": [item]} if asked is CALL else {"messages": [{"role": "user", "content": item}]}
        verdict = heard_result(revision, asked[0], asked[1], value)
        assert rules(verdict) == expected
        assert verdict.onward is verdict.frame


def test_the_quick_look_reports_it_too() -> None:
    talk = Talk().opened().listed({"name": "draw", "inputSchema": {"type": "object"}})
    good(talk.client(call(1, "draw", {})))
    assert rules(talk.server(result(1, {"content": [image(BAD)]}))) == ["protocol/base64"]


@rows("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_sampling_is_judged_in_both_directions(revision: str) -> None:
    talk = Talk().opened(revision)
    params: dict[str, Any] = {"maxTokens": 5, "messages": [{"role": "user", "content": image(BAD)}]}
    assert rules(talk.server(request("s", "sampling/createMessage", params))) == ["protocol/base64"]
    answer = {"role": "assistant", "model": "m", "content": image(BAD)}
    assert rules(talk.client(result("s", answer))) == ["protocol/base64"]
