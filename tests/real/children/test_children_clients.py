"""The official Python client, against a server over STDIO that is served over HTTP: it finds what that server has."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assay.spec.revisions import LATEST
from kit.http_client import CATALOGUE
from kit.places import ROOT, TESTS
from kit.scripted_http import listening

SDK = ROOT / ".venvs" / "sdk"
SERVE = (
    *(sys.executable, "-m", "assay", "serve"),
    *("--schemas", str(CATALOGUE / "jsonschema"), "--examples", str(CATALOGUE / "examples")),
)
CALLS = [
    {"name": "get_schema", "arguments": {"name": "tone"}},
    {"name": "get_schema", "arguments": {}},
    {"name": "nope", "arguments": {}},
]


def report_of(plan: dict[str, Any]) -> dict[str, Any]:
    """What the official Python client gets."""
    command = [str(SDK / "bin" / "python"), str(TESTS / "real" / "clients" / "python_client.py")]
    done = subprocess.run(
        command, input=json.dumps(plan), capture_output=True, encoding="utf-8", check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_the_official_client_gets_what_it_asks_for_in_both_eras(tmp_path: Path) -> None:
    if not (SDK / ".done").exists():
        pytest.skip("the official Python SDK is not installed: `make test` installs it")
    with listening(tmp_path, "--mode", "enforce", "--", *SERVE) as guard:
        server = {"url": "http://{}:{}/mcp".format(*guard.address)}
        plans = [
            {"transport": "http", "handshake": handshake, "revision": revision, "server": server, "calls": CALLS}
            | {"reads": [], "gets": [], "completions": []}
            for handshake, revision in ((True, "2025-11-25"), (False, LATEST))
        ]
        with ThreadPoolExecutor() as pool:
            reports = list(pool.map(report_of, plans))
    for plan, report in zip(plans, reports, strict=True):
        assert report["revision"] == plan["revision"]
        assert len(report["tools"]["tools"]) == 7
        good, bad, unknown = report["calls"]
        assert good["result"]["structuredContent"]["data"]["ok"] is True
        assert bad["result"]["isError"] is True
        assert unknown["error"]["code"] == -32602
