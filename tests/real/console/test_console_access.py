"""Who gets at a console: only this user's browser and programs, with the token."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kit.consoles import RunningConsole, console

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def running() -> Iterator[RunningConsole]:
    """Return a console without guards."""
    with tempfile.TemporaryDirectory() as state, console(Path(state)) as found:
        yield found


@pytest.fixture
def browser(running: RunningConsole) -> Iterator[httpx.Client]:
    """Return a browser that has opened the address once."""
    with httpx.Client(base_url=running.base, trust_env=False) as client:
        assert client.get(running.address).status_code == 303
        yield client


@pytest.fixture
def stranger(running: RunningConsole) -> Iterator[httpx.Client]:
    """Return a browser without the token."""
    with httpx.Client(base_url=running.base, trust_env=False) as client:
        yield client


def test_the_first_visit_sets_a_strict_cookie(running: RunningConsole, stranger: httpx.Client) -> None:
    found = stranger.get(running.address)
    assert (found.status_code, found.headers["location"]) == (303, "/")
    name, *traits = found.headers["set-cookie"].split("; ")
    assert set(traits) == {"HttpOnly", "SameSite=Strict", "Path=/"}
    assert running.token not in name
    page = stranger.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")


def test_every_answer_has_the_headers_of_safety(browser: httpx.Client, stranger: httpx.Client) -> None:
    answers = [browser.get(path) for path in ("/", "assets/console_app.js", "api/state", "api/none", "api/rows")]
    for each in (*answers, stranger.get("/"), stranger.get("api/state")):
        assert each.headers["content-security-policy"] == CSP
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["referrer-policy"] == "no-referrer"
        assert each.headers["cache-control"] in {"no-store", "no-cache"}
        assert "access-control-allow-origin" not in each.headers


@pytest.mark.parametrize(
    "path", ["", "api/state", "api/rows", "api/events", "assets/console_app.js", "?token=wrong", "?token="]
)
def test_without_the_token_nothing_is_shown(stranger: httpx.Client, path: str) -> None:
    found = stranger.get(path)
    assert found.status_code == 401
    assert "set-cookie" not in found.headers


def test_the_page_without_the_token_says_what_to_do(stranger: httpx.Client) -> None:
    found = stranger.get("")
    assert "Open the address that `assay console` printed" in found.text
    assert found.headers["content-type"].startswith("text/plain")


def test_signing_out_ends_this_browser_alone(running: RunningConsole, browser: httpx.Client) -> None:
    own = {"Origin": running.base.rstrip("/")}
    kept = dict(browser.cookies)
    with (
        httpx.Client(base_url=running.base, trust_env=False) as other,
        browser.stream("GET", "api/events") as stream,
    ):
        assert other.get(running.address).status_code == 303
        assert dict(other.cookies) != kept
        left = browser.post("api/logout", json={}, headers=own)
        assert (left.status_code, left.headers["set-cookie"].endswith("; Max-Age=0")) == (200, True)
        # A page that still listens gets the end of its stream, not an error.
        assert "event" not in "".join(stream.iter_lines())
        assert not dict(browser.cookies)
        assert browser.get("api/state").status_code == 401
        name, value = kept.popitem()
        assert httpx.get(running.base, headers={"Cookie": f"{name}={value}"}, trust_env=False).status_code == 401
        assert other.get("api/state").status_code == 200
    assert browser.get(running.address).status_code == 303
    assert browser.get("api/state").status_code == 200


def test_signing_out_ends_the_pages_of_earlier_visits(running: RunningConsole, browser: httpx.Client) -> None:
    kept = dict(browser.cookies)
    with browser.stream("GET", "api/events") as stream:
        # The address is opened once more, in another tab.
        assert browser.get(running.address).status_code == 303
        assert dict(browser.cookies) == kept
        assert browser.post("api/logout", json={}, headers={"Origin": running.base.rstrip("/")}).status_code == 200
        assert "event" not in "".join(stream.iter_lines())
    # Only a cookie of the console is kept, not one that somebody else has set.
    browser.cookies.set(*kept.popitem(), domain="127.0.0.1")
    assert browser.get("api/state").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_hosts_and_origins_are_refused(browser: httpx.Client, headers: dict[str, str]) -> None:
    """A page on another port of this machine sends our cookie, too: ports do not make a site."""
    found = browser.get("api/state", headers=headers)
    assert (found.status_code, found.json()["error"]["code"]) == (403, "forbidden")


def test_a_link_on_another_page_opens_the_console(running: RunningConsole, browser: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert browser.get("/", headers=headers).status_code == 200


def test_a_post_needs_our_origin_and_json(running: RunningConsole, browser: httpx.Client) -> None:
    own = {"Origin": running.base.rstrip("/")}
    body = {"rule": "contract/input"}
    assert browser.post("api/exception", json=body).status_code == 403
    assert browser.post("api/exception", json=body, headers={"Origin": "http://localhost:1"}).status_code == 403
    assert browser.post("api/exception", data={"rule": "a"}, headers=own).status_code == 400
    assert browser.post("api/exception", json=body, headers=own).status_code == 200
    assert browser.post("api/exception", json=[], headers=own).status_code == 400
    assert (
        browser.post("api/exception", content=b"{", headers={**own, "Content-Type": "application/json"}).status_code
        == 400
    )


def test_a_large_body_is_refused(running: RunningConsole) -> None:
    assert running.post("api/export", {"filter": "a" * (1 << 20)}).status_code == 413


@pytest.mark.parametrize(
    "path",
    ["assets/", "assets/../console/console_app.py", "assets/%2e%2e/py.typed", "assets//etc/passwd", "assets/none.js"],
)
def test_only_files_of_the_page_are_served(running: RunningConsole, path: str) -> None:
    assert running.http.get(path).status_code == 404


def test_a_file_that_is_known_is_not_sent_again(running: RunningConsole) -> None:
    first = running.http.get("assets/console_app.js")
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    again = running.http.get("assets/console_app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("DELETE", "api/state", 405),
        ("GET", "api/none", 404),
        ("GET", "none", 404),
        ("GET", "api/messages/1", 404),
        ("GET", "api/messages/x", 404),
        ("GET", "api/rows?after=x", 400),
        ("GET", "api/contracts?server=9", 404),
        ("HEAD", "api/events", 405),
        ("HEAD", "api/state", 200),
    ],
)
def test_requests_that_are_not_in_the_contract_get_an_error(
    running: RunningConsole, method: str, path: str, status: int
) -> None:
    assert running.http.request(method, path).status_code == status


def test_the_port_is_only_open_on_this_machine(running: RunningConsole) -> None:
    assert httpx.URL(running.base).host == "127.0.0.1"


def test_an_answer_is_compressed_if_the_client_accepts_it(running: RunningConsole) -> None:
    small = running.http.get("api/state", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers
