"""What `populate_backend` makes of the answer of a backend, and of its address. Nothing is sent."""

import json
from dataclasses import replace
from typing import Any

import pytest

from assay.assets import store_backend
from assay.assets.asset_tools import populate_backend
from assay.assets.store_backend import Answer, StoreBackend
from kit.catalogues import answer, bundled
from kit.rows import rows

ASSET = {"name": "Tap", "haptic": {"name": "Tap", "pulses": [{"intensity": 1, "milliseconds": 20}]}}


def result_of(monkeypatch: pytest.MonkeyPatch, found: Answer | None, url: str = "http://b.example") -> dict[str, Any]:
    """The result of the tool where the backend answers this."""
    monkeypatch.setattr(store_backend, "_posted", lambda _, __: found)
    return answer(replace(bundled(), backend=StoreBackend(url)), "populate_backend", asset=ASSET)


@rows(
    ("found", "status", "detail"),
    [
        (Answer(409, b'{"error": "exists"}'), 409, "exists"),
        (Answer(404, b"<html>", True), 404, "not found"),
        (Answer(500, b'{"detail": {"trace": 1}}'), 500, "internal server error"),
        (Answer(409, b"exists\n already", True), 409, "exists already"),
        *(
            (Answer(400, body, text), 400, "bad request")
            for body, text in ((b"no", False), (b"\xff", True), (b" ", True))
        ),
        (Answer(400, b"word " * 999, True), 400, "word " * 40),
        (Answer(400, b'{"error": "E", "message": "M"}'), 400, "M"),
        (Answer(400, b'{"error": {"code": 1, "message": "deep"}}'), 400, "deep"),
        (Answer(422, b'{"detail": [{"loc": [], "msg": "missing"}]}'), 422, "missing"),
        (Answer(599, b""), 599, "unknown error"),
        (Answer(500, json.dumps({"detail": "a\n\x1b[31m" + "x" * 999}).encode()), 500, "a [31m" + "x" * 194),
        (Answer(500, None), 500, "internal server error"),
        (Answer(0), 502, "the backend sent no HTTP response"),
        (None, 503, "network_unreachable"),
        *(
            (Answer(200, body), 502, "the backend answered 200 without a usable id")
            for body in (
                *(b"stored!", b"{}", b"[1]", b'{"id": null}', b'{"id": true}', b'{"id": ""}', b'{"id": 1.5}', None),
                *(b'{"id": "a", "id": "b"}', b'{"id": "%s"}' % (b"x" * 1025)),
            )
        ),
    ],
)
def test_a_backend_that_fails_is_an_error_with_its_own_words(
    monkeypatch: pytest.MonkeyPatch, found: Answer | None, status: int, detail: str
) -> None:
    expected = {"ok": False, "reason": "backend_error", "status": status, "detail": detail}
    assert result_of(monkeypatch, found) == expected


@rows(("name", "shown"), [(b'"a-1"', "a-1"), (b"17", "17"), (b'"\xc3\xa4"', "ä")])
def test_the_id_is_the_backends_own_and_no_password_is_shown(
    monkeypatch: pytest.MonkeyPatch, name: bytes, shown: str
) -> None:
    found = result_of(monkeypatch, Answer(201, b'{"id": %s, "more": []}' % name), "http://user:secret@b.example")
    assert found == {"ok": True, "asset_id": shown, "backend_url": "http://b.example"}
    assert "secret" not in repr(StoreBackend("http://user:secret@b.example"))


# ── the address ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_time_out_is_that_of_the_specification() -> None:
    """specs/001 §2: 5 s."""
    found = StoreBackend.read({"SYN_BACKEND_URL": "http://b.example/"})
    assert found == StoreBackend("http://b.example", "/synesthetic-assets/", 5.0, 15.0)
    other = StoreBackend.read({"SYN_BACKEND_URL": "http://b.example", "SYN_BACKEND_ASSETS_PATH": "x"})
    assert other is not None
    assert other.url + other.path == "http://b.example/x"


@rows("environ", [{}, {"SYN_BACKEND_URL": ""}, {"SYN_BACKEND_ASSETS_PATH": "/x"}])
def test_without_a_url_there_is_no_backend(environ: dict[str, str]) -> None:
    assert answer(bundled(**environ), "populate_backend", asset=ASSET) == {
        "ok": False, "reason": "unsupported", "detail": "SYN_BACKEND_URL is not set",
    }  # fmt: skip


@rows("url", ["b.example", "ftp://b.example", "http://", "http://[b", "http://b:port", "http://b/?a=1", "http://b/#c"])
def test_a_url_that_is_none_is_an_operators_mistake(url: str) -> None:
    result = answer(bundled(SYN_BACKEND_URL=url), "populate_backend", asset=ASSET)
    detail = "SYN_BACKEND_URL must be an http or https URL without a query or a fragment"
    assert (result["reason"], result["detail"]) == ("unsupported", detail)


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_invalid_is_sent_unless_the_caller_takes_that_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """specs/001 §1: assets must be validated before persistence; `validate_first` is how a caller takes that over."""
    sent: list[bytes] = []

    def posted(_: StoreBackend, body: bytes) -> Answer:
        sent.append(body)
        return Answer(200, b'{"id": 1}')

    monkeypatch.setattr(store_backend, "_posted", posted)
    catalogue = bundled(SYN_BACKEND_URL="http://b.example")
    refused = answer(catalogue, "populate_backend", asset={"name": "x"})
    assert (refused["ok"], refused["reason"]) == (False, "validation_failed")
    validated = answer(catalogue, "validate_asset", asset={"name": "x"}, schema="synesthetic-asset")
    assert refused["errors"] == validated["errors"]
    assert answer(catalogue, "populate_backend", asset={"name": "x"}, validate_first=True) == refused
    unknown = answer(catalogue, "populate_backend", asset={**ASSET, "$schemaRef": "other.schema.json"})
    assert "unknown schema `other`" in unknown["errors"][0]["msg"]
    for asset in (float("nan"), {"a": float("inf")}, {1: 2}, "\ud800"):
        result = populate_backend(catalogue, asset, validate_first=False)
        assert (result["ok"], result["reason"]) == (False, "validation_failed")
    assert sent == []
    assert answer(catalogue, "populate_backend", asset={"n": [2**70, 1.0]}, validate_first=False)["ok"] is True
    assert sent == [b'{"n":[1180591620717411303424,1.0]}']
