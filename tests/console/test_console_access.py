"""Who gets at a console: only this user's browser and programs, with the token. Nothing is sent over a socket."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, cast

import httpx
import pytest
from app_clients import ORIGIN, ServedConsole
from test_console_state import fed, record

from assay.console.state import ConsoleState
from kit.consoles import parsed
from kit.rows import rows

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
OWN = {"Origin": ORIGIN}


@pytest.fixture
def served() -> ServedConsole:
    """Return a console without guards."""
    return ServedConsole()


def visit(served: ServedConsole, client: httpx.Client) -> httpx.Response:
    """Open the address that the console prints."""
    return client.get("/", params={"token": served.access.token})


@pytest.fixture
def browser(served: ServedConsole) -> Iterator[httpx.Client]:
    """Return a browser that has opened the address once."""
    with served.client() as client:
        assert visit(served, client).status_code == 303
        yield client


def test_the_first_visit_sets_a_strict_cookie(served: ServedConsole) -> None:
    stranger = served.client()
    found = visit(served, stranger)
    assert (found.status_code, found.headers["location"]) == (303, "/")
    name, *traits = found.headers["set-cookie"].split("; ")
    assert {each.lower() for each in traits} == {"httponly", "samesite=strict", "path=/"}
    assert served.access.token not in name
    page = stranger.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")


def test_every_answer_has_the_headers_of_safety(served: ServedConsole, browser: httpx.Client) -> None:
    paths = ("/", "assets/app.js", "api/state", "api/none", "api/rows")
    for each in (*map(browser.get, paths), *map(served.client().get, paths)):
        assert each.headers["content-security-policy"] == CSP
        assert each.headers["x-content-type-options"] == "nosniff"
        assert each.headers["x-frame-options"] == "DENY"
        assert each.headers["referrer-policy"] == "no-referrer"
        assert each.headers["cache-control"] in {"no-store", "no-cache"}
        assert "access-control-allow-origin" not in each.headers


@rows("path", ["", "api/state", "api/rows", "api/events", "assets/app.js", "?token=wrong", "?token="])
def test_without_the_token_nothing_is_shown(served: ServedConsole, path: str) -> None:
    found = served.client().get(path)
    assert (found.status_code, "set-cookie" in found.headers) == (401, False)
    if not path.startswith("api/"):
        assert "Open the address that `assay console` printed" in found.text
        assert found.headers["content-type"].startswith("text/plain")


@rows(
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
    # But a link on another page opens the console.
    navigates = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert browser.get("/", headers=navigates).status_code == 200


@rows(
    ("body", "headers", "status"),
    [
        ({"json": {"rule": "contract/input"}}, {}, 403),
        ({"json": {"rule": "contract/input"}}, {"Origin": "http://localhost:1"}, 403),
        ({"data": {"rule": "a"}}, OWN, 400),
        ({"json": {"rule": "contract/input"}}, OWN, 200),
        ({"json": []}, OWN, 400),
        ({"content": b"{"}, {**OWN, "Content-Type": "application/json"}, 400),
        ({"json": {"rule": "a" * (1 << 20)}}, OWN, 413),
    ],
)
def test_a_post_needs_our_origin_and_json(
    browser: httpx.Client, body: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    assert browser.post("api/exception", headers=headers, **body).status_code == status


@rows(
    ("method", "path", "status"),
    [
        ("DELETE", "api/state", 405),
        ("GET", "api/none", 404),
        ("GET", "none", 404),
        ("GET", "api/messages/1", 404),
        ("GET", "api/messages/x", 404),
        ("GET", "api/rows?after=x", 400),
        ("HEAD", "api/events", 405),
        ("HEAD", "api/state", 200),
        # Only files of the page are served.
        ("GET", "assets/", 404),
        ("GET", "assets/../console/app.py", 404),
        ("GET", "assets/%2e%2e/py.typed", 404),
        ("GET", "assets//etc/passwd", 404),
    ],
)
def test_requests_that_are_not_in_the_contract_get_an_error(
    served: ServedConsole, method: str, path: str, status: int
) -> None:
    assert served.http.request(method, path).status_code == status


def test_a_file_that_is_known_is_not_sent_again(served: ServedConsole) -> None:
    first = served.http.get("assets/app.js")
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    again = served.http.get("assets/app.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_rows_are_chosen_by_number_dropped_at_the_limit_and_compressed() -> None:
    served = ServedConsole(fed(ConsoleState(most_rows=1_000), map(record, range(1, 2_501))))
    answer = served.http.get("api/rows", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    found, numbers = served.get("api/state"), [row[0] for row in answer.json()["rows"]]
    assert numbers == list(range(found["oldest"], found["newest"] + 1))
    assert found["dropped"]["rows"] + len(numbers) == found["newest"] == 2_500
    assert len(numbers) <= 1_000
    assert served.http.get("api/messages/1").json()["error"]["code"] == "dropped"
    assert [row[0] for row in served.get("api/rows?after=2497")["rows"]] == [2498, 2499, 2500]
    assert len(served.get("api/rows?limit=7")["rows"]) == 7
    small = served.http.get("api/state", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in small.headers


# ── pages that listen ────────────────────────────────────────────────────────────────────────────────────────────────


class Listener:
    """A page that listens until the console ends its stream."""

    def __init__(self, served: ServedConsole, cookies: dict[str, str]) -> None:
        [cookie] = cookies.items()
        given = {"host": ORIGIN.removeprefix("http://"), "cookie": "=".join(cookie)}
        self.text = ""
        self.begun = asyncio.Event()
        self._gone = asyncio.Event()
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/events",
            "query_string": b"after=0",
            "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        self.task = asyncio.create_task(served.app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.text += message.get("body", b"").decode()
        if self.text:
            self.begun.set()


def async_client(served: ServedConsole) -> httpx.AsyncClient:
    """Return a browser for a scenario in which a page listens."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(cast("Any", served.app)), base_url=ORIGIN)


async def listening(served: ServedConsole, client: httpx.AsyncClient) -> Listener:
    """Open the address in a browser, and let its page listen."""
    assert (await client.get("/", params={"token": served.access.token})).status_code == 303
    page = Listener(served, dict(client.cookies))
    await page.begun.wait()
    return page


def in_time(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a scenario, with a limit that is only reached when something is broken."""
    asyncio.run(asyncio.wait_for(scenario, 60))


def test_signing_out_ends_the_pages_of_this_browser_alone(served: ServedConsole) -> None:
    async def scenario() -> None:
        browser, other = async_client(served), async_client(served)
        # The address is opened once more in another tab: the cookie stays, and with it the streams of both.
        pages = [await listening(served, browser), await listening(served, browser)]
        kept, foreign = dict(browser.cookies), await listening(served, other)
        assert dict(other.cookies) != kept
        left = await browser.post("api/logout", json={}, headers=OWN)
        assert (left.status_code, "Max-Age=0" in left.headers["set-cookie"]) == (200, True)
        for page in pages:
            # It gets the end of its stream, not an error.
            await page.task
            assert "event:" not in page.text
        assert not dict(browser.cookies)
        for cookies in ({}, kept):
            with served.client() as again:
                again.cookies.update(cookies)
                assert (await asyncio.to_thread(again.get, "api/state")).status_code == 401
        assert (await other.get("api/state")).status_code == 200
        assert not foreign.task.done()
        served.app.stop()
        await foreign.task
        assert "event: bye" in foreign.text

    in_time(scenario())


@rows("last", ["feedface-1-1", "nonsense", "-"])
def test_a_page_of_another_start_is_asked_to_load_again(served: ServedConsole, last: str) -> None:
    found = served.http.get("api/events", headers={"Last-Event-ID": last})
    assert [kind for kind, _, _ in parsed(iter(found.text.split("\n")))] == ["reset"]
