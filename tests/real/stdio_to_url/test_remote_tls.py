"""A server at a URL over TLS: whose certificate is trusted, and which one is shown. Against real TLS on loopback."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from stdio_to_url import modern, remotely
from url_server import SECONDS, Elsewhere, elsewhere


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
def secured(files: Files, *, host: str = "127.0.0.1", asks: bool = False, **kwargs: Any) -> Iterator[Elsewhere]:
    """A server with a certificate for *host*, that *asks* its clients for one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files.authority.issue_cert(host, **kwargs).configure_cert(context)
    if asks:
        context.verify_mode = ssl.CERT_REQUIRED
        files.authority.configure_trust(context)
    with elsewhere(tls=context) as server:
        yield server


def asked(directory: Path, server: Elsewhere, **settings: str) -> Any:
    """What a client gets from *server* through a guard with these settings."""
    variables = {f"ASSAY_UPSTREAM_{name.upper()}": value for name, value in settings.items()}
    with remotely(directory, server.url, **variables) as guarded:
        return guarded.ask(modern(1, "tools/list"))


def test_a_server_with_a_certificate_of_the_given_authority_is_reached(tmp_path: Path, files: Files) -> None:
    with secured(files) as server:
        assert asked(tmp_path, server, ca=files.ca)["result"]["tools"]


EXPIRED = datetime.now(UTC) - timedelta(days=1)


@pytest.mark.parametrize(
    ("made", "given", "why"),
    [
        pytest.param({}, False, "unable to get local issuer certificate", id="unknown-authority"),
        pytest.param({"host": "other.example"}, True, "mismatch", id="other-host"),
        pytest.param({"not_after": EXPIRED}, True, "certificate has expired", id="expired"),
    ],
)
def test_a_server_that_cannot_be_verified_gets_no_message(
    tmp_path: Path, files: Files, made: dict[str, Any], given: bool, why: str
) -> None:
    with secured(files, **made) as server:
        answer = asked(tmp_path, server, **({"ca": files.ca} if given else {}))
        assert "no secure connection" in answer["error"]["message"]
        assert why in answer["error"]["message"]
        assert server.order() == []


def test_the_client_certificate_is_shown_to_a_server_that_asks_for_one(tmp_path: Path, files: Files) -> None:
    with secured(files, asks=True) as server:
        assert asked(tmp_path, server, ca=files.ca, certificate=files.client)["result"]["tools"]


def test_without_a_client_certificate_such_a_server_answers_nothing(tmp_path: Path, files: Files) -> None:
    with secured(files, asks=True) as server:
        assert "error" in asked(tmp_path, server, ca=files.ca)
        assert server.order() == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        pytest.param({"ca": "missing.pem"}, "the certificates of upstream.ca cannot be read", id="no-ca"),
        pytest.param(
            {"certificate": "missing.pem"}, "upstream.certificate and upstream.key cannot be used", id="no-own"
        ),
        pytest.param({"key": "missing.pem"}, "key needs certificate", id="only-a-key"),
    ],
)
def test_files_that_cannot_be_used_stop_the_guard_before_it_starts(
    tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    variables = {f"ASSAY_UPSTREAM_{name.upper()}": value for name, value in settings.items()}
    with remotely(tmp_path, "https://127.0.0.1:1/mcp", **variables) as guarded:
        assert guarded.process.wait(SECONDS) == 2
        assert words in guarded.log
        assert "Traceback" not in guarded.log
