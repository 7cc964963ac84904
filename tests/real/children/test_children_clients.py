"""
The official clients, against servers over STDIO that are served over HTTP.

Behind the guard, which stops what is wrong, they find what they find at a server that speaks HTTP by itself. The
official conformance suite does so in `tests/conformance/test_transparency.py`.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from suite import served

from assay.spec.revisions import LATEST
from kit.hosted import HOST
from kit.http_client import CATALOGUE
from kit.places import ROOT

SDK = ROOT / ".venvs" / "sdk"
SERVE = (
    *(sys.executable, "-m", "assay", "serve"),
    *("--schemas", str(CATALOGUE / "jsonschema"), "--examples", str(CATALOGUE / "examples")),
)


def host(*command: str) -> list[str]:
    """What serves *command* over HTTP, and stops what is wrong."""
    return [sys.executable, str(HOST), "--mode", "enforce", "--", *command]


@pytest.fixture(scope="module")
def sdk() -> str:
    """The Python that has the official SDK."""
    if not (SDK / ".done").exists():
        pytest.skip("the official Python SDK is not installed: `make test` installs it")
    return str(SDK / "bin" / "python")


def report_of(sdk: str, plan: dict[str, Any]) -> dict[str, Any]:
    """What the official Python client gets."""
    command = [sdk, str(ROOT / "tests" / "clients" / "python_client.py")]
    told = json.dumps(plan)
    done = subprocess.run(command, input=told, capture_output=True, encoding="utf-8", check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("handshake", [True, False])
def test_the_official_client_gets_what_it_asks_for(sdk: str, handshake: bool) -> None:
    plan: dict[str, Any] = {
        "transport": "http",
        "handshake": handshake,
        "revision": "2025-11-25" if handshake else LATEST,
        "calls": [
            {"name": "get_schema", "arguments": {"name": "tone"}},
            {"name": "get_schema", "arguments": {}},
            {"name": "nope", "arguments": {}},
        ],
        "reads": [],
        "gets": [],
        "completions": [],
    }
    with served(host(*SERVE)) as url, ThreadPoolExecutor() as pool:
        reports = list(pool.map(lambda _: report_of(sdk, {**plan, "server": {"url": url}}), range(2)))
    for report in reports:
        assert report["revision"] == plan["revision"]
        assert len(report["tools"]["tools"]) == 7
        good, bad, unknown = report["calls"]
        assert good["result"]["structuredContent"]["data"]["ok"] is True
        assert bad["result"]["isError"] is True
        assert unknown["error"]["code"] == -32602


def test_the_page_about_it_names_every_setting() -> None:
    page = (ROOT / "docs" / "guard-children.md").read_text()
    assert all(name in page for name in ("guard.children", "http.session_seconds"))
