"""How a server at a URL is reached: directly, by a proxy, or over TLS. Against real TLS on loopback."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from guarded_url import guarded_url, modern
from scripted_url import ScriptedUrl, scripted_url

from kit.rows import rows


def test_a_proxy_is_used_if_a_setting_asks_and_never_for_this_machine(tmp_path: Path) -> None:
    """Ours: a variable of the shell does not decide who reads the messages. A way that others can read is warned of."""
    asks = {"ASSAY_UPSTREAM_PROXIES": "true", "NO_PROXY": "", "no_proxy": ""}
    other = "http://books.invalid/mcp"
    with scripted_url() as server, scripted_url() as proxy:
        given = {"HTTP_PROXY": proxy.url, "http_proxy": proxy.url}
        with guarded_url(tmp_path, other, **given) as guard:
            answer = guard.ask(modern(1, "tools/list"))
            assert answer["error"]["message"].startswith("No answer came: the server's name could not be resolved: ")
            assert "http://books.invalid/mcp has no encryption" in guard.shown
        with guarded_url(tmp_path, server.url, **given, **asks) as guard:
            assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
            assert "has no encryption" not in guard.shown
        assert proxy.order() == []
        with guarded_url(tmp_path, other, **given, **asks) as guard:
            assert guard.ask(modern(1, "tools/list"))["result"]["tools"]
        assert [each.headers["host"] for each in proxy.heard("tools/list")] == ["books.invalid"]


class Files(NamedTuple):
    """A certificate authority, and the files that it has signed."""

    authority: trustme.CA
    ca: str
    client: str
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
) -> Iterator[ScriptedUrl]:
    """A server with a certificate for *host*, that *asks* its clients for one; or a *plain* one, without TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files.authority.issue_cert(host, **kwargs).configure_cert(context)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        files.authority.configure_trust(context)
    with scripted_url(tls=None if plain else context) as server:
        server.url = server.url.replace("http:", "https:")
        yield server


EXPIRED = datetime.now(UTC) - timedelta(days=1)
UNTRUSTED = "unable to get local issuer certificate"


@rows(
    ("made", "given", "why"),
    [
        ({}, ["ca"], None),
        ({}, [], UNTRUSTED),
        ({"host": "other.example"}, ["ca"], "mismatch"),
        ({"not_after": EXPIRED}, ["ca"], "certificate has expired"),
        ({"asks": True}, ["ca", "certificate"], None),
        ({"asks": True}, ["ca"], ""),
        ({"plain": True}, ["ca"], "no secure connection: "),
    ],
)
def test_a_server_is_asked_over_tls_if_either_side_trusts_the_other(
    tmp_path: Path, files: Files, made: dict[str, Any], given: list[str], why: str | None
) -> None:
    """One that cannot be verified, or that wants a certificate which is not given, gets no message."""
    known = {"ca": files.ca, "certificate": files.client}
    variables = {f"ASSAY_UPSTREAM_{name.upper()}": known[name] for name in given}
    with secured(files, **made) as server, guarded_url(tmp_path, server.url, **variables) as guard:
        answer = guard.ask(modern(1, "tools/list"))
        if why is None:
            assert answer["result"]["tools"]
        else:
            assert why in answer["error"]["message"]
            assert not why or "no secure connection" in answer["error"]["message"]
            assert server.order() == []
