"""How a server at a URL is reached: directly, by a proxy, or over TLS. Against real TLS on loopback."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from guarded_url import guarded_url, modern

from assay.edges.upstream_client import UpstreamClient, url_of
from assay.edges.upstream_errors import BrokenError
from assay.settings.http_section import UpstreamSettings
from kit.guard_process import frame_of
from kit.http_client import modern as headers_of
from kit.rows import rows
from kit.scripted_http import ScriptedServer, guarding, scripted


def test_a_proxy_is_used_if_a_setting_asks_and_never_for_this_machine(tmp_path: Path) -> None:
    """Ours: a variable of the shell does not decide who reads the messages. A way that others can read is warned of."""
    asks = {"ASSAY_UPSTREAM_PROXIES": "true", "NO_PROXY": "", "no_proxy": ""}
    other = "http://books.invalid/mcp"
    with scripted() as server, scripted() as proxy:
        given = {"HTTP_PROXY": proxy.url, "http_proxy": proxy.url}
        with guarded_url(tmp_path, other, **given) as guard:
            answer = guard.ask(modern(1, "tools/list"))
            assert answer["error"]["message"].startswith("No answer came: the server's name could not be resolved: ")
            assert "http://books.invalid/mcp has no encryption" in guard.shown
        with guarded_url(tmp_path, server.url, **given, **asks) as guard:
            assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
            assert "has no encryption" not in guard.shown
        assert proxy.asked() == []
        with guarded_url(tmp_path, other, **given, **asks) as guard:
            assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
        assert [each.header("host") for each in proxy.heard("tools/list")] == ["books.invalid"]


class Files(NamedTuple):
    """A certificate authority, and the files that it has signed."""

    authority: trustme.CA
    ca: str
    certificate: str
    """A client certificate with its key."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Made for this run, so that nothing expires."""
    directory = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    authority.issue_cert("guard.example").private_key_and_cert_chain_pem.write_to_path(str(directory / "client.pem"))
    return Files(authority, str(directory / "ca.pem"), str(directory / "client.pem"))


@contextmanager
def secured(
    files: Files, *, host: str = "127.0.0.1", asks: bool = False, plain: bool = False, **kwargs: Any
) -> Iterator[ScriptedServer]:
    """A server with a certificate for *host*, that *asks* its clients for one; or a *plain* one, without TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files.authority.issue_cert(host, **kwargs).configure_cert(context)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        files.authority.configure_trust(context)
    with scripted(tls=None if plain else context) as server:
        server.url = server.url.replace("http:", "https:")
        yield server


EXPIRED = datetime.now(UTC) - timedelta(days=1)
LISTING = modern(1, "tools/list")


async def reached(url: str, settings: UpstreamSettings) -> str:
    """Why the server at *url* cannot be asked; empty if it can."""
    client = UpstreamClient(url, settings)
    try:
        async with client.ask("POST", url_of(url), [], frame_of(LISTING)) as answer:
            assert answer.status == 200
    except BrokenError as error:
        return str(error)
    finally:
        await client.close()
    return ""


@rows(
    ("made", "given", "why"),
    [
        ({}, ["ca"], None),
        ({}, [], "no secure connection: unable to get local issuer certificate"),
        ({"host": "other.example"}, ["ca"], "no secure connection: ip address mismatch"),
        ({"not_after": EXPIRED}, ["ca"], "no secure connection: certificate has expired"),
        ({"asks": True}, ["ca", "certificate"], None),
        ({"asks": True}, ["ca"], ""),
        ({"plain": True}, ["ca"], "no secure connection: "),
    ],
)
def test_only_a_server_that_can_be_verified_is_asked(
    files: Files, made: dict[str, Any], given: list[str], why: str | None
) -> None:
    """One that wants a certificate which is not given gets no message, either."""
    settings = UpstreamSettings(**{name: getattr(files, name) for name in given})
    with secured(files, **made) as server:
        found = asyncio.run(reached(server.url, settings))
        assert (found == "") is (why is None)
        assert found.startswith(why or "")
        assert server.asked() == ["tools/list"] * (why is None)


def test_guards_of_both_kinds_have_the_certificates_of_their_settings(tmp_path: Path, files: Files) -> None:
    variables = {f"ASSAY_UPSTREAM_{name}": getattr(files, name.lower()) for name in ("CA", "CERTIFICATE")}
    with secured(files, asks=True) as server:
        with guarded_url(tmp_path, server.url, **variables) as guard:
            assert guard.ask(LISTING)["result"]["tools"]
        with guarding(tmp_path, server.url, env=variables) as service:
            assert service.post(LISTING, headers_of(LISTING)).status == 200
        assert server.asked() == ["tools/list"] * 2
