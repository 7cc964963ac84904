"""A server at a URL over TLS, for clients over HTTP. Against real TLS on loopback."""

import ssl
from pathlib import Path

import pytest
import trustme

from assay.spec.revisions import LATEST
from kit.http_client import call, modern
from kit.scripted_http import good, guarding, lying

CALL = call(7, "search", {"words": "sea"}, LATEST)


@pytest.mark.parametrize("mode", ["audit", "enforce"])
def test_only_a_server_of_the_given_authority_is_asked(tmp_path: Path, mode: str) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with lying(good, context) as liar:
        with guarding(tmp_path, liar.url, "--mode", mode, "--set", f"upstream.ca={tmp_path / 'ca.pem'}") as guard:
            # The script answers without what 2026-07-28 asks for; that it is asked is what counts.
            guard.post(CALL, modern(CALL))
            assert [each.method for each in liar.seen] == ["POST"]
        with guarding(tmp_path, liar.url, "--mode", mode) as guard:
            answer = guard.post(CALL, modern(CALL))
            assert answer.status == 502
            assert "unable to get local issuer certificate" in answer.error()["message"]
            assert len(liar.seen) == 1
