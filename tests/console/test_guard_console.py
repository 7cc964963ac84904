"""`assay guard --listen … --console`: the page beside a guard, with and without keys."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay.console.console_rows import COLUMNS
from kit.command import assay, assay_text
from kit.consoles import SECONDS, http_guard, parsed

KEY = "k" * 43
OTHER = "o" * 43


def call(url: str, *options: str) -> None:
    """Call a tool through the guard, once with a good argument and once with a wrong one."""
    for arguments in ('{"count": 1}', '{"count": "x"}'):
        assert assay("call", *options, url, "look", arguments).returncode in {0, 1}


def rows_of(client: httpx.Client, count: int) -> list[list[Any]]:
    """Return the rows once there are so many calls."""
    with client.stream("GET", "api/events?after=0") as stream:
        seen: list[list[Any]] = []
        for kind, data, _ in parsed(stream.iter_lines()):
            seen += data["rows"] if kind == "rows" else []
            if sum(row[6] == "tools/call" for row in seen) >= count:
                return seen
    raise AssertionError("the console has ended")


@pytest.mark.parametrize("feed", ["true", "false"])
def test_without_keys_the_token_opens_the_page(state: Path, tmp_path: Path, feed: str) -> None:
    options = ("--console", "--set", "journal.payloads=true", "--set", f"guard.feed={feed}")
    with http_guard(state, tmp_path, *options) as (url, page):
        base = page.partition("?")[0]
        assert base == url.removesuffix("/mcp") + "/console/"
        with httpx.Client(base_url=base, timeout=SECONDS, trust_env=False) as client:
            assert client.get("api/state").status_code == 401
            first = client.get(page)
            assert (first.status_code, first.headers["location"]) == (303, "/console/")
            assert "Path=/console/" in first.headers["set-cookie"]
            assert client.get("").headers["content-type"].startswith("text/html")
            call(url)
            assert len(rows_of(client, 4)) >= 14
            found = client.get("api/state").json()
            assert found["own"] == "guard"
            [server] = found["servers"]
            assert (server["name"], server["mode"], server["callable"]) == ("lib", "audit", True)
            [group] = client.get("api/findings").json()["groups"]
            assert (group["rule"], group["wouldBlock"]) == ("contract/input", 1)
            own = {"Origin": base.removesuffix("/console/")}
            wish = {"server": found["servers"][0]["id"], "tool": "look", "arguments": {"count": 2}}
            assert client.post("api/call", json=wish, headers=own).json()["verdicts"][1]["accepted"]
            assert client.post("api/demo", json={}, headers=own).status_code == 404
            assert client.get("api/state", headers={"Host": "evil.example"}).status_code == 403
            assert client.get(base.removesuffix("/")).status_code == 308
        # The guard itself is as before.
        assert httpx.get(url.removesuffix("/mcp") + "/healthz", trust_env=False).text == "ok\n"
        assert httpx.get(url.removesuffix("/mcp") + "/consoles", trust_env=False).status_code == 404


def test_with_keys_a_principal_is_needed(state: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    settings = tmp_path / "auth.toml"
    other = hashlib.sha256(OTHER.encode()).hexdigest()
    settings.write_text(
        f'[auth]\nconsole = ["alice"]\n[auth.keys.alice]\nhash = "sha256:{digest}"\n'
        f'[auth.keys.bob]\nhash = "sha256:{other}"\n'
    )
    options = ("--console", "--config", str(settings), "--set", "journal.payloads=true")
    with http_guard(state, tmp_path, *options) as (url, page):
        assert "token" not in page
        bearer = {"Authorization": f"Bearer {KEY}"}
        own = {"Origin": page.removesuffix("/console/")}
        with httpx.Client(base_url=page, timeout=SECONDS, trust_env=False) as client:
            assert client.get("").status_code == 200
            refused = client.get("api/state")
            assert (refused.status_code, refused.json()["error"]["login"]) == (401, "bearer")
            assert client.get(f"?token={KEY}").status_code == 401
            assert client.get("api/state", headers={"Authorization": "Bearer wrong"}).status_code == 401
            assert client.get("api/state", headers={"Authorization": f"Bearer {OTHER}"}).status_code == 401
            assert client.get("api/state", headers=bearer).status_code == 200
            assert client.post("api/login", json={}, headers={**own, "Authorization": "Bearer no"}).status_code == 401
            signed = client.post("api/login", json={}, headers={**own, **bearer})
            assert signed.status_code == 200
            assert KEY not in signed.headers["set-cookie"]
            assert client.get("api/state").status_code == 200
            call(url, "--header", f"Authorization: Bearer {KEY}")
            rows = rows_of(client, 4)
            assert not [row for row in rows if KEY in str(row)]
            principal, kind = COLUMNS.index("principal"), COLUMNS.index("kind")
            assert {row[principal] for row in rows} == {"alice"}
            for row in rows:
                message = client.get(f"api/messages/{row[0]}")
                assert KEY not in message.text
                if row[kind] == "result":
                    http = message.json()["http"]
                    assert (http["method"], http["status"], http["headers"]["Authorization"]) == (
                        *("POST", 200, "(present)"),
                    )
            sessions = client.get("api/sessions").json()["sessions"]
            assert {each["principal"] for each in sessions} == {"alice"}
            for words, lines in (("principal:ali", len(rows)), ("-principal:alice", 0), ("principal:bob", 0)):
                file = client.post("api/export", json={"format": "journal", "filter": words}, headers=own)
                assert len(file.text.splitlines()) == lines
            server = client.get("api/state").json()["servers"][0]["id"]
            wish = {"server": server, "tool": "look", "arguments": {"count": 2}}
            # The key of the signed-in browser is used for the call.
            assert client.post("api/call", json=wish, headers=own).json()["verdicts"][1]["accepted"]
            assert client.post("api/logout", json={}, headers=own).status_code == 200
            assert client.get("api/state").status_code == 401


def test_with_keys_the_settings_name_those_that_see_everything(tmp_path: Path) -> None:
    settings = tmp_path / "auth.toml"
    settings.write_text(f'[auth.keys.alice]\nhash = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"\n')
    options = ("--listen", "127.0.0.1:0", "--console", "--config", str(settings))
    done = assay_text("guard", *options, "--", sys.executable, "-c", "")
    assert done.returncode == 2
    assert "--console needs auth.console" in done.stderr


def test_the_option_needs_an_address() -> None:
    done = assay_text("guard", "--console", "--", "true")
    assert done.returncode == 2
    assert "--console needs --listen ADDRESS" in done.stderr
