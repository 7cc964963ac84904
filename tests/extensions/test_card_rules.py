"""The rules about server cards and AI catalogs: legal and illegal documents for each, and what is never a finding."""

import time
from typing import Any

import pytest
from card_server import CARD, GOOD_HEADERS, INFO

from assay.base.verdict import Violation
from assay.core.extensions.card_context import (
    Runtime,
    check_response,
    check_runtime,
    not_encrypted,
    not_revalidated,
    runtime_of,
)
from assay.core.extensions.card_rules import (
    DOCUMENT_BYTES,
    MEDIA_TYPE,
    MOST_LISTED,
    check_card,
    check_catalog,
    read_document,
)
from assay.core.policy import fitting
from assay.rules import RULES
from assay.spec.revisions import LATEST, LATEST_HANDSHAKE, REVISIONS

URL = "https://weather.example.com/mcp"
REMOTE: dict[str, Any] = {"type": "streamable-http", "url": URL}
HEADERS = {name.lower().encode(): value.encode() for name, value in GOOD_HEADERS.items()}
ENTRY: dict[str, Any] = {
    "identifier": "urn:air:example.com:weather",
    "type": MEDIA_TYPE,
    "url": "https://weather.example.com/mcp/server-card",
}


def card(**members: Any) -> dict[str, Any]:
    return {**CARD, **members}


def remote(**members: Any) -> dict[str, Any]:
    return card(remotes=[{**REMOTE, **members}])


def places(violations: Any) -> list[tuple[str, str]]:
    return [(each.rule, each.at) for each in violations]


# ── the card ─────────────────────────────────────────────────────────────────────────────────────────────────────────

GOOD_CARDS = {
    "minimal": CARD,
    "pre-release": card(version="1.0.0-x.7"),
    "build": card(version="1.0.0+x"),
    "date": card(version="2026.11.17"),
    "word": card(version="latest"),
    "debian": card(version="1.0~beta1"),
    "words-with-x": card(version="x64-build"),
    "remote": remote(),
    "this-machine": remote(url="http://localhost:8080/mcp"),
    "loopback": remote(url="http://[::1]:8080/mcp"),
    "variables": remote(url="https://{tenant}.example.com/mcp", variables={"tenant": {"isRequired": True}}),
    "variable-port": remote(url="https://example.com:{port}/mcp", variables={"port": {"format": "number"}}),
    "variable-first": remote(url="{base}/mcp", variables={"base": {}}),
    "http-with-a-variable-host": remote(url="http://{host}/mcp", variables={"host": {}}),
    "secret-to-be-asked-for": remote(headers=[{"name": "X-Api-Key", "isSecret": True, "isRequired": True}]),
    "secret-with-a-variable": remote(
        headers=[{"name": "A", "isSecret": True, "value": "Bearer {key}", "variables": {"key": {"isSecret": True}}}]
    ),
    "variable-of-the-remote-in-a-header": remote(
        variables={"tenant": {}}, headers=[{"name": "X-Tenant", "value": "{tenant}"}]
    ),
    "public-value": remote(headers=[{"name": "X-Channel", "value": "stable"}]),
    "unknown-member": card(vendor={"tools": 1}),
}


@pytest.mark.parametrize("name", GOOD_CARDS)
def test_a_good_card_has_no_findings(name: str) -> None:
    assert check_card(GOOD_CARDS[name]) == ((), 0)


BAD_CARDS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "no-object": ([], [("card/schema", "")]),
    "no-name": ({key: value for key, value in CARD.items() if key != "name"}, [("card/schema", "")]),
    "no-namespace": (card(name="weather"), [("card/schema", "/name")]),
    "other-schema": (card(**{"$schema": "https://example.com/x.json"}), [("card/schema", "/$schema")]),
    "long-description": (card(description="x" * 101), [("card/schema", "/description")]),
    "format": (card(websiteUrl="example.com/docs"), [("card/format", "/websiteUrl")]),
    "format-and-shape": (
        card(websiteUrl="example.com", title=5),
        [("card/format", "/websiteUrl"), ("card/schema", "/title")],
    ),
    "transport": (remote(type="stdio"), [("card/schema", "/remotes/0/type")]),
    "remote-without-scheme": (remote(url="example.com/mcp"), [("card/schema", "/remotes/0/url")]),
    "tools": (card(tools=[]), [("card/primitives", "/tools")]),
    "prompts-and-resources": (
        card(prompts=[], resources=[]), [("card/primitives", "/prompts"), ("card/primitives", "/resources")],
    ),
    "no-host": (remote(url="https:///mcp"), [("card/remote", "/remotes/0/url")]),
    "bad-port": (remote(url="https://example.com:99999/mcp"), [("card/remote", "/remotes/0/url")]),
    "http": (remote(url="http://weather.example.com/mcp"), [("card/remote", "/remotes/0/url")]),
    "variable": (remote(url="https://{tenant}.example.com/mcp"), [("card/remote", "/remotes/0/url")]),
    "variable-of-a-header": (
        remote(headers=[{"name": "A", "value": "Bearer {key}"}]), [("card/remote", "/remotes/0/headers/0/value")],
    ),
    "password": (remote(url="https://me:hunter2@example.com/mcp"), [("card/secret", "/remotes/0/url")]),
    "secret-header": (
        remote(headers=[{"name": "A", "isSecret": True, "value": "hunter2"}]),
        [("card/secret", "/remotes/0/headers/0/value")],
    ),
    "secret-variable": (
        remote(url="https://example.com/{a/b}/{key}", variables={"key": {"isSecret": True, "default": "hunter2"}}),
        [("card/secret", "/remotes/0/variables/key/default")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CARDS)
def test_a_broken_card_is_reported_with_its_place(name: str) -> None:
    document, expected = BAD_CARDS[name]
    found = check_card(document)
    assert sorted(places(found.violations)) == sorted(expected)
    assert all(each.action == "report" for each in found.violations)


@pytest.mark.parametrize(
    "version",
    ["^1.2.3", "~1.2", ">=1", "<2", "=1", "1.x", "1.2.X", "1.*", "*", "x", "v1.x", "1 - 2", "1 || 2", "1, <2"],
)
def test_a_range_is_not_a_version(version: str) -> None:
    [found] = check_card(card(version=version)).violations
    assert (found.rule, found.at, found.found) == ("card/version", "/version", f'"{version}"')


def test_a_secret_is_not_shown() -> None:
    for name in ("password", "secret-header", "secret-variable"):
        assert "hunter2" not in str(check_card(BAD_CARDS[name][0]).violations)


def test_the_place_of_a_card_in_a_document_is_in_every_finding() -> None:
    found = check_card(remote(type="stdio", url="http://a.example/"), "/entries/3/data")
    assert {each.at for each in found.violations} == {
        "/entries/3/data/remotes/0/type",
        "/entries/3/data/remotes/0/url",
    }


def test_many_findings_are_counted_and_not_listed() -> None:
    found = check_card(card(remotes=[{**REMOTE, "url": "http://a.example/"}] * 50))
    assert len(found.violations) == MOST_LISTED
    assert found.more == 50 - MOST_LISTED


@pytest.mark.parametrize("content", [b"", b"<html>", b"{", b'{"a":1,"a":2}', b"\xff", b"[" * 1000])
def test_what_is_not_json_is_reported_by_the_rules_of_syntax(content: bytes) -> None:
    found = read_document(content)
    assert isinstance(found, Violation)
    assert found.rule.startswith("syntax/")
    assert found.action == "report"


def _many(count: int, **members: Any) -> dict[str, Any]:
    """A card with as many of something as a document can have."""
    return card(remotes=[{**REMOTE, **members}] * count)


VARIABLES: dict[str, Any] = {f"v{number}": {} for number in range(40_000)}
LARGEST = {
    "text": card(version="1" * 255, description="x" * 500_000),
    "name": card(name="a" * 900_000),
    "urls": _many(60, type=5, url="https://e.example/" + "{a}" * 2000),
    "remotes": card(remotes=[5] * 100_000),
    "open-remotes": card(remotes=[{"url": "http://e.e/{a}"}] * 40_000),
    "headers": _many(1, headers=[{"value": "{a}"}] * 30_000, variables=VARIABLES),
    "variables": _many(1, variables={name: {"isSecret": True, "value": "x"} for name in list(VARIABLES)[:30_000]}),
    "icons": card(icons=[{"src": f"https://e.example/{number}"} for number in range(30_000)]),
}


@pytest.mark.parametrize("name", LARGEST)
def test_the_largest_documents_are_judged_in_bounded_time(name: str) -> None:
    """In processor time, which other processes do not change."""
    document = LARGEST[name]
    icons = [{"src": f"https://e.example/{number}"} for number in range(30_000, 200_000)]
    began = time.process_time()
    check_card(document)
    check_catalog({"entries": [{**ENTRY, "data": document}]})
    list(check_runtime(document, server({**INFO, "icons": icons}, tuple(VARIABLES))))
    # On an idle machine the slowest takes 0.5 s.
    assert time.process_time() - began < 12


def test_thousands_of_broken_entries_are_not_explained() -> None:
    began = time.process_time()
    found = check_catalog({"entries": [{"type": MEDIA_TYPE, "data": {}}] * (DOCUMENT_BYTES // 60)})
    assert len(found.violations) == MOST_LISTED
    assert found.more
    assert time.process_time() - began < 12


# ── the catalog ──────────────────────────────────────────────────────────────────────────────────────────────────────

GOOD_ENTRIES = {
    "url": ENTRY,
    "data": {"identifier": "a", "type": MEDIA_TYPE, "data": CARD},
    "agent": {"type": "application/a2a-agent-card+json"},
    "skill": {"identifier": "b", "type": "text/markdown", "url": "x", "data": 5},
}


@pytest.mark.parametrize("name", GOOD_ENTRIES)
def test_a_good_entry_has_no_findings(name: str) -> None:
    assert check_catalog({"specVersion": "1.0", "entries": [GOOD_ENTRIES[name]]}) == ((), 0)


BAD_ENTRIES: dict[str, tuple[Any, list[str]]] = {
    "no-object": (5, [""]),
    "no-identifier": ({"type": MEDIA_TYPE, "url": URL}, ["/identifier"]),
    "empty-identifier": ({**ENTRY, "identifier": ""}, ["/identifier"]),
    "other-type": ({**ENTRY, "type": "application/json"}, ["/type"]),
    "old-type": ({**ENTRY, "type": "application/mcp-server+json"}, ["/type"]),
    "media-type": ({"identifier": "a", "mediaType": MEDIA_TYPE, "url": URL}, ["/type"]),
    "type-of-a-card": ({"identifier": "a", "type": "application/json", "data": CARD}, ["/type"]),
    "neither": ({"identifier": "a", "type": MEDIA_TYPE}, [""]),
    "both": ({**ENTRY, "data": CARD}, [""]),
    "url": ({**ENTRY, "url": 5}, ["/url"]),
}


@pytest.mark.parametrize("name", BAD_ENTRIES)
def test_a_broken_entry_is_reported(name: str) -> None:
    entry, expected = BAD_ENTRIES[name]
    found = check_catalog({"entries": [ENTRY, entry]}).violations
    assert places(found) == [("card/catalog", f"/entries/1{each}") for each in expected]


def test_a_card_in_a_catalog_is_judged() -> None:
    found = check_catalog({"entries": [{"identifier": "a", "type": MEDIA_TYPE, "data": card(version="^1")}]})
    assert places(found.violations) == [("card/version", "/entries/0/data/version")]


@pytest.mark.parametrize("catalog", [[], 5, {}, {"entries": {}}])
def test_a_catalog_without_entries_is_reported(catalog: Any) -> None:
    assert places(check_catalog(catalog).violations) == [("card/catalog", "")]


# ── the response ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_good_response_has_no_findings() -> None:
    assert list(check_response(HEADERS)) == []
    assert list(check_response({**HEADERS, b"content-type": b"Application/MCP-Server-Card+JSON; charset=utf-8"})) == []


@pytest.mark.parametrize(
    ("name", "value", "rule", "found"),
    [
        (b"content-type", b"application/json", "card/media-type", '"application/json"'),
        (b"content-type", None, "card/media-type", "none"),
        (b"access-control-allow-origin", b"https://a.example", "card/cors", '"https://a.example"'),
        (b"access-control-allow-origin", None, "card/cors", "none"),
        (b"cache-control", None, "card/caching", "none"),
        (b"etag", b" ", "card/caching", "none"),
    ],
)
def test_a_header_that_is_missing_or_wrong_is_reported(name: bytes, value: bytes | None, rule: str, found: str) -> None:
    headers = {key: each for key, each in HEADERS.items() if key != name} | ({} if value is None else {name: value})
    [wrong] = check_response(headers)
    assert (wrong.rule, wrong.found) == (rule, found)


def test_the_media_type_of_a_catalog_is_not_judged() -> None:
    """It is defined elsewhere; several are in use."""
    assert list(check_response({**HEADERS, b"content-type": b"application/json"}, card=False)) == []
    assert [each.rule for each in check_response({}, card=False)] == ["card/cors", "card/caching"]


def test_plain_http_and_a_missing_304_are_reported() -> None:
    assert not_encrypted().rule == "card/https"
    assert (not_revalidated(200).rule, not_revalidated(200).found) == ("card/caching", "HTTP 200")


# ── the server itself ────────────────────────────────────────────────────────────────────────────────────────────────


def server(info: Any = INFO, revisions: tuple[str, ...] = (LATEST,), *, lists: bool = True) -> Runtime:
    return Runtime(URL, info, revisions, lists)


AGREES = {
    "short-name": (CARD, server()),
    "whole-name": (CARD, server({**INFO, "name": "com.example/weather"})),
    "nothing-known": (CARD, server({})),
    "only-the-server-has-it": (CARD, server({**INFO, "title": "Weather", "icons": [{"src": "https://a.example/i"}]})),
    "only-the-card-has-it": (card(title="Weather", icons=[{"src": "https://a.example/i"}]), server()),
    "longer-description": (card(description="Forecasts."), server({**INFO, "description": "Forecasts for all."})),
    "cut-description": (card(description="Forecasts and…"), server({**INFO, "description": "Forecasts  and more"})),
    "slash": (card(websiteUrl="https://a.example"), server({**INFO, "websiteUrl": "https://a.example/"})),
    "fewer-icons": (
        card(icons=[{"src": "https://a.example/i"}]),
        server({**INFO, "icons": [{"src": "https://a.example/j"}, {"src": "https://a.example/i"}]}),
    ),
    "embedded-icons": (
        card(icons=[{"src": "data:image/png;base64,AA=="}]), server({**INFO, "icons": [{"src": "https://a.example/j"}]}),
    ),
    "revisions": (remote(supportedProtocolVersions=[LATEST]), server()),
    "older-revisions": (remote(supportedProtocolVersions=[LATEST_HANDSHAKE, LATEST]), server()),
    "not-all-revisions": (remote(supportedProtocolVersions=[LATEST]), server(revisions=REVISIONS)),
    "agreed-revision": (
        remote(supportedProtocolVersions=[LATEST_HANDSHAKE]), server(revisions=(LATEST_HANDSHAKE,), lists=False),
    ),
    "another-remote": (remote(url="https://eu.example.com/mcp", type="sse"), server()),
    "no-object": ([], server()),
    "odd-remotes": (card(remotes=[5, {"url": 5}, {"url": "https://[::1"}]), server()),
}  # fmt: skip


@pytest.mark.parametrize("name", AGREES)
def test_a_card_that_agrees_with_its_server_has_no_findings(name: str) -> None:
    document, runtime = AGREES[name]
    assert list(check_runtime(document, runtime)) == []


DIFFERS: dict[str, tuple[Any, Runtime, str]] = {
    "name": (CARD, server({**INFO, "name": "forecast"}), "/name"),
    "version": (CARD, server({**INFO, "version": "1.5.0"}), "/version"),
    "title": (card(title="Weather"), server({**INFO, "title": "Forecast"}), "/title"),
    "description": (CARD, server({**INFO, "description": "Sends letters."}), "/description"),
    "website": (
        card(websiteUrl="https://a.example"), server({**INFO, "websiteUrl": "https://b.example"}), "/websiteUrl",
    ),
    "icons": (
        card(icons=[{"src": "https://a.example/i"}]),
        server({**INFO, "icons": [{"src": "https://a.example/j"}]}),
        "/icons",
    ),
    "transport": (remote(type="sse"), server(), "/remotes/0/type"),
    "revisions": (
        remote(supportedProtocolVersions=["2099-01-01"]), server(), "/remotes/0/supportedProtocolVersions",
    ),
    "older-revisions": (
        remote(supportedProtocolVersions=list(REVISIONS)),
        server(revisions=(LATEST_HANDSHAKE, LATEST)),
        "/remotes/0/supportedProtocolVersions",
    ),
    "agreed-revision": (
        remote(supportedProtocolVersions=[LATEST]),
        server(revisions=(LATEST_HANDSHAKE,), lists=False),
        "/remotes/0/supportedProtocolVersions",
    ),
    "the-same-remote": (
        remote(url="https://WEATHER.example.com:443/mcp/", type="sse"), server(), "/remotes/0/type",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERS)
def test_a_card_that_contradicts_its_server_is_reported(name: str) -> None:
    document, runtime, at = DIFFERS[name]
    [found] = check_runtime(document, runtime)
    assert (found.rule, found.at) == ("card/runtime", at)


def test_a_remote_with_streamable_http_comes_before_one_with_sse_at_the_same_url() -> None:
    both = card(remotes=[{**REMOTE, "type": "sse"}, REMOTE])
    assert list(check_runtime(both, server())) == []


def test_the_first_result_of_a_server_is_read() -> None:
    stateless = {"supportedVersions": [LATEST, 5], "_meta": {"io.modelcontextprotocol/serverInfo": INFO}}
    assert runtime_of(stateless, URL) == server()
    assert runtime_of(stateless, URL).method == "server/discover"
    older = {"protocolVersion": LATEST_HANDSHAKE, "serverInfo": INFO}
    assert runtime_of(older, URL) == server(revisions=(LATEST_HANDSHAKE,), lists=False)
    assert runtime_of({"_meta": 5, "serverInfo": 5}, URL) == server({}, (), lists=False)


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_rule_about_cards_is_broken_here() -> None:
    broken = {rule for _, expected in BAD_CARDS.values() for rule, _ in expected}
    broken |= {"card/version", "card/catalog", "card/runtime"}
    broken |= {"card/media-type", "card/cors", "card/caching", "card/https"}
    assert broken == {rule for rule in RULES if rule.startswith("card/")}


def test_no_policy_stops_a_document() -> None:
    for rule in RULES.values():
        if rule.rung == "card":
            assert (rule.action, rule.severest, fitting(rule.id)) == ("report", "report", ("pass",))
