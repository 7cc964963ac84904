"""`assay card`: as a process, with files and with real servers on this machine."""

import json
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from card_server import CARD, INFO, CardServer, card_server, older_server

from assay.core.extensions.card_rules import DOCUMENT_BYTES, MEDIA_TYPE
from assay.edges.probe.card_inquiry import DocumentPlace, places_of
from assay.spec.revisions import LATEST, LATEST_HANDSHAKE
from kit.command import assay_text


@pytest.fixture
def server() -> Iterator[CardServer]:
    with card_server() as made:
        yield made


def ran(*arguments: str, **options: Any) -> tuple[int, str, str]:
    """The status, the output and the errors of a run."""
    done = assay_text("card", *arguments, **options)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def found(*arguments: str, **options: Any) -> tuple[int, dict[str, Any], str]:
    """The status, the report as JSON and the errors of a run."""
    status, out, err = ran("--format", "json", *arguments, **options)
    return status, json.loads(out), err


def rules(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["rule"], each["at"]) for each in report["violations"]]


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_good_file_is_named_and_has_no_findings(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    expected = "card.json\n✓ card com.example/weather 1.4.0\nno findings\n"
    assert ran("card.json", cwd=tmp_path) == (0, expected, "")


def test_a_finding_has_place_expectation_value_rule_source_and_fix() -> None:
    status, out, err = ran("-", said=json.dumps({**CARD, "version": "^1.4"}))
    assert (status, err) == (1, "")
    assert out == (
        "standard input\n"
        "! card com.example/weather ^1.4\n"
        '         /version: expected one version, such as 1.4.0, found "^1.4"\n'
        "         card/version (SEP-2127 (experimental), schema: version)\n"
        "         → Write the version that serverInfo has, such as 1.4.0.\n"
        "1 finding\n"
    )


def test_programs_get_one_json_object() -> None:
    status, report, err = found("-", said=json.dumps({**CARD, "name": "weather"}))
    assert (status, err) == (1, "")
    assert list(report) == ["source", "kind", "compared", "remarks", "violations", "more"]
    assert (report["source"], report["kind"], report["compared"]) == ("standard input", "card", None)
    [violation] = report["violations"]
    assert (violation["rule"], violation["at"], violation["found"]) == ("card/schema", "/name", 'the string "weather"')


def test_a_broken_shape_has_another_mark_than_a_report() -> None:
    assert "\n✗ card weather 1.4.0\n" in ran("-", said=json.dumps({**CARD, "name": "weather"}))[1]


@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff\xfe", b'{"a":1,"a":2}'])
def test_what_is_not_json_is_a_finding(content: bytes) -> None:
    status, report, _ = found("-", said=content)
    assert status == 1
    assert report["violations"][0]["rule"].startswith("syntax/")


def test_control_characters_of_a_card_do_not_reach_the_terminal() -> None:
    _, out, _ = ran("-", said=json.dumps({**CARD, "name": "\x1b[31mred", "version": "1\x07"}))
    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nowhere.json",), "nowhere.json: No such file or directory"),
        (("runs",), "runs: Is a directory"),
        (("large.json",), f"large.json: the document has more than {DOCUMENT_BYTES:,} bytes"),
        (("--header", "A: b", "card.json"), "--header is for a server at a URL"),
        (("file:///etc/passwd",), "expected a URL that begins with http:// or https://"),
        (("http://[::1/mcp",), "expected a URL that begins with http:// or https://"),
        (("http://127.0.0.1:1/mcp",), "cannot connect to the server: Connection refused"),
        (("--header", "A: env:NOT_SET_AT_ALL", "http://127.0.0.1:1/"), "the variable NOT_SET_AT_ALL is not set"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_status_2(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "large.json").write_bytes(b" " * (DOCUMENT_BYTES + 1))
    status, out, err = ran(*arguments, cwd=tmp_path)
    assert (status, out) == (2, "")
    assert err.startswith("assay card: ")
    assert why in err
    assert err.count("\n") == 1


def test_a_catalog_is_judged_with_the_cards_in_it() -> None:
    entries = [
        {"identifier": "a", "type": MEDIA_TYPE, "data": {**CARD, "tools": []}},
        {"type": "application/a2a-agent-card+json"},
        {"identifier": "c", "type": MEDIA_TYPE},
    ]
    status, out, _ = ran("--catalog", "-", said=json.dumps({"entries": entries}))
    assert status == 1
    assert out.startswith("standard input\n✗ catalog with 2 server cards\n")
    assert "/entries/0/data/tools: expected no tools" in out
    assert "/entries/2: expected exactly one of url and data, found none" in out


def test_files_need_no_extra_and_urls_name_it(tmp_path: Path) -> None:
    """The module of the extra is hidden by one that cannot be imported."""
    (tmp_path / "aiohttp.py").write_text("raise ModuleNotFoundError(\"No module named 'aiohttp'\", name='aiohttp')\n")
    (tmp_path / "card.json").write_text(json.dumps(CARD))
    assert ran("card.json", cwd=tmp_path, PYTHONPATH=str(tmp_path))[0] == 0
    status, out, err = ran("http://127.0.0.1:1/mcp", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (status, out) == (2, "")
    assert err.startswith("assay card: a document at a URL needs aiohttp: ")


# ── a server ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/server-card"])
def test_the_card_of_a_good_server_agrees_with_it(server: CardServer, path: str) -> None:
    server.show({**CARD, "remotes": [{"type": "streamable-http", "url": server.url}]})
    status, report, err = found(server.origin + path)
    assert (status, report["violations"], err) == (0, [], "")
    assert report["source"] == f"{server.url}/server-card"
    compared = {"url": server.origin + (path if path == "/mcp/" else "/mcp"), "method": "server/discover"}
    assert report["compared"] == {**compared, "revision": LATEST}


def test_the_card_is_requested_by_its_media_type_and_once_more_for_304(server: CardServer) -> None:
    assert ran("--no-runtime", server.url)[0] == 0
    asked = [(method, path, headers["accept"]) for method, path, headers in server.asked]
    assert asked == [("GET", "/mcp/server-card", MEDIA_TYPE)] * 2
    assert [headers.get("if-none-match") for _, _, headers in server.asked] == [None, '"one"']


def test_a_server_with_a_handshake_is_asked_with_initialize(server: CardServer) -> None:
    server.speaks = older_server
    server.show({**CARD, "remotes": [{"type": "streamable-http", "url": server.url}]})
    status, report, _ = found(server.url)
    assert status == 0
    assert report["compared"] == {"url": server.url, "method": "initialize", "revision": LATEST_HANDSHAKE}
    server.info = {**INFO, "version": "1.5.0"}
    status, report, _ = found(server.url)
    assert (status, rules(report)) == (1, [("card/runtime", "/version")])


def test_contradictions_with_the_server_are_findings(server: CardServer) -> None:
    server.info = {**INFO, "name": "forecast", "title": "Forecast"}
    remote = {"type": "sse", "url": server.url, "supportedProtocolVersions": ["2099-01-01"]}
    server.show({**CARD, "title": "Weather", "remotes": [remote]})
    status, report, _ = found(server.url)
    places = ["/name", "/title", "/remotes/0/type", "/remotes/0/supportedProtocolVersions"]
    assert (status, rules(report)) == (1, [("card/runtime", each) for each in places])
    assert report["violations"][0]["expected"] == 'what the server sends, "forecast"'


def test_without_runtime_the_server_itself_is_not_asked(server: CardServer) -> None:
    server.info = {"name": "other", "version": "9"}
    status, report, err = found("--no-runtime", server.url)
    assert (status, report["compared"], err) == (0, None, "")
    assert {method for method, _, _ in server.asked} == {"GET"}


def test_a_server_at_another_url_than_the_remotes_of_its_card_is_a_remark(server: CardServer) -> None:
    server.show({**CARD, "remotes": [{"type": "streamable-http", "url": "https://weather.example.com/mcp"}]})
    status, report, err = found(server.url)
    assert status == 0
    assert report["remarks"] == [f"no remote of the card has the URL {server.url}"]
    assert err == f"assay card: no remote of the card has the URL {server.url}\n"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Content-Type": "application/json"}, ["card/media-type"]),
        ({"Access-Control-Allow-Origin": "https://a.example"}, ["card/cors"]),
        ({"Cache-Control": ""}, ["card/caching"]),
        ({"ETag": ""}, ["card/caching"]),
    ],
)
def test_headers_of_the_response_are_judged(server: CardServer, headers: dict[str, str], expected: list[str]) -> None:
    server.headers |= headers
    status, report, _ = found("--no-runtime", server.url)
    assert (status, [rule for rule, _ in rules(report)]) == (1, expected)
    assert "the HTTP response: expected " in " ".join(ran("--no-runtime", server.url)[1].split())


def test_a_server_that_sends_an_unchanged_card_again_is_reported(server: CardServer) -> None:
    class Forgetful(dict[str, str]):
        """Headers whose ETag differs from the one that the server compares with."""

        def get(self, name: str, default: Any = None) -> Any:
            return '"two"' if name == "ETag" else super().get(name, default)

    server.headers = Forgetful(server.headers)
    status, report, _ = found("--no-runtime", server.url)
    assert (status, rules(report)) == (1, [("card/caching", "")])
    assert report["violations"][0]["found"] == "HTTP 200"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server: CardServer, status: int) -> None:
    server.status = status
    server.headers |= {"Location": "http://127.0.0.1:1/elsewhere?token=hunter2"}
    code, out, err = ran(server.url)
    assert (code, out) == (2, "")
    assert f"HTTP {status}: a redirect to http://127.0.0.1:1/elsewhere, which is not followed" in err
    assert "hunter2" not in err
    assert len(server.asked) == 1


@pytest.mark.parametrize(("status", "why"), [(401, "give a token with --header"), (500, "HTTP 500")])
def test_an_error_of_the_server_is_shown(server: CardServer, status: int, why: str) -> None:
    server.status = status
    code, out, err = ran(server.url)
    assert (code, out) == (2, "")
    assert why in err


def test_a_server_without_a_card_is_named(server: CardServer) -> None:
    server.documents.clear()
    code, out, err = ran(server.url)
    assert (code, out) == (2, "")
    assert err == f"assay card: {server.url}: HTTP 404: there is no such document\n"
    assert [path for _, path, _ in server.asked] == ["/mcp/server-card", "/mcp"]


def test_a_document_that_is_too_long_is_not_read_to_its_end(server: CardServer) -> None:
    server.show(b" " * (8 * DOCUMENT_BYTES))
    code, out, err = ran(server.url)
    assert (code, out) == (2, "")
    assert f"the document has more than {DOCUMENT_BYTES:,} bytes" in err


def test_a_server_that_never_ends_its_document_is_late(server: CardServer) -> None:
    server.is_slow = True
    code, out, err = ran("--timeout", "0.5", server.url)
    assert (code, out) == (2, "")
    assert err.endswith(": no response in time\n")


def test_a_compressed_document_is_refused(server: CardServer) -> None:
    server.headers |= {"Content-Encoding": "gzip"}
    code, _, err = ran(server.url)
    assert code == 2
    assert "the document is compressed" in err


def test_a_page_in_place_of_a_card_is_a_finding(server: CardServer) -> None:
    server.show(b"<!doctype html><title>Welcome</title>")
    status, report, _ = found("--no-runtime", server.url)
    assert (status, rules(report)) == (1, [("syntax/json", "")])


def test_a_server_that_does_not_answer_leaves_a_good_card_uncompared(server: CardServer) -> None:
    server.speaks = lambda *_: None
    code, out, err = ran(server.url)
    assert code == 2
    assert "✓ card com.example/weather 1.4.0\n" in out
    assert f"assay card: {server.url}: the server itself could not be asked: " in err
    assert "--no-runtime judges the card alone" in err
    server.show({**CARD, "version": "^1"})
    assert ran(server.url)[0] == 1


def test_a_server_of_http_and_sse_need_not_answer(server: CardServer) -> None:
    server.speaks = lambda *_: None
    server.show({**CARD, "remotes": [{"type": "sse", "url": server.url}]})
    assert ran(server.url)[0] == 0


def test_a_card_at_another_place_is_compared_with_a_remote_of_the_same_origin_only(server: CardServer) -> None:
    here, elsewhere = server.url, "http://127.0.0.1:1/mcp"
    for urls, compared in (([elsewhere, here], here), ([elsewhere], None)):
        server.show({**CARD, "remotes": [{"type": "streamable-http", "url": each} for each in urls]}, "/card.json")
        status, report, err = found(f"{server.origin}/card.json")
        assert status == 0
        assert (report["compared"] or {}).get("url") == compared
        assert ("not compared with a server" in err) is (compared is None)


def test_a_card_at_a_place_without_a_usual_name_is_found(server: CardServer) -> None:
    server.documents.clear()
    server.show(CARD, "/about")
    assert found(f"{server.origin}/about")[1]["source"] == f"{server.origin}/about"


def test_headers_go_to_the_server_and_are_not_shown(server: CardServer) -> None:
    status, out, err = ran("--header", "X-Api-Key: env:KEY", server.url, KEY="hunter2")
    assert status == 0
    assert all(headers["x-api-key"] == "hunter2" for _, _, headers in server.asked)
    assert {method for method, _, _ in server.asked} == {"GET", "POST"}
    assert "hunter2" not in out + err


def test_the_query_of_an_endpoint_is_kept_and_not_shown(server: CardServer) -> None:
    server.show(CARD, "/mcp/server-card?key=hunter2")
    status, out, err = ran("--no-runtime", f"{server.url}?key=hunter2")
    assert status == 0
    assert "hunter2" not in out + err


@pytest.mark.parametrize("path", ["", "/", "/mcp", "/.well-known/ai-catalog.json"])
def test_the_catalog_of_a_site_is_at_its_well_known_place(server: CardServer, path: str) -> None:
    entry = {"identifier": "a", "type": MEDIA_TYPE, "url": f"{server.url}/server-card"}
    server.show({"entries": [entry]}, "/.well-known/ai-catalog.json")
    server.headers["Content-Type"] = "application/json"
    status, out, err = ran("--catalog", server.origin + path)
    assert (status, err) == (0, "")
    assert out == f"{server.origin}/.well-known/ai-catalog.json\n✓ catalog with 1 server card\nno findings\n"
    assert {path for _, path, _ in server.asked} == {"/.well-known/ai-catalog.json"}


def test_a_card_over_tls_is_read_if_its_certificate_is_trusted(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with card_server(tls=context) as server:
        status, report, _ = found("--set", f"upstream.ca={tmp_path / 'ca.pem'}", server.url)
        assert (status, report["violations"], report["compared"]["url"]) == (0, [], server.url)
        code, out, err = ran(server.url)
        assert (code, out) == (2, "")
        assert "no secure connection" in err


def test_where_a_document_is_follows_from_the_url() -> None:
    card = "https://a.example/mcp/server-card"
    assert places_of("https://a.example/mcp", catalog=False)[0] == DocumentPlace(card, "https://a.example/mcp")
    assert places_of(card, catalog=False) == [DocumentPlace(card, "https://a.example/mcp")]
    assert places_of("https://a.example", catalog=False)[0].url == "https://a.example/server-card"
    assert places_of("https://a.example/c.json#x", catalog=True)[0].url == "https://a.example/c.json#x"


@pytest.mark.skipif(sys.platform == "win32", reason="the command itself is tried in tests/platforms")
def test_the_help_lists_the_command() -> None:
    assert "judge the card of a server" in " ".join(assay_text("--help").stdout.split())
