"""A guard over HTTP whose stderr nobody reads goes on all the same."""

import subprocess
from pathlib import Path

from kit.guard_process import liar
from kit.http_client import BOTH, INITIALIZED, SECONDS, Log, Service, call, environment, initialize, request
from kit.scripted_http import GUARD


def test_a_server_that_floods_a_stderr_that_nobody_reads_holds_up_nobody(tmp_path: Path) -> None:
    server = liar(on={"tools/call": [["logs", 4 << 20], ["good"]]})
    with subprocess.Popen(
        [*GUARD, "--mode", "enforce", "--listen", "127.0.0.1:0", "--", *server],
        env=environment(tmp_path),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        try:
            port = process.stderr.readline().decode().rpartition(":")[2].partition("/")[0]
            with open("/dev/null", "rb") as nothing:
                service = Service(process, tmp_path / "ready", Log(nothing))
                service.address = "127.0.0.1", int(port)
                opened = service.post(initialize("2025-06-18"))
                headers = {**BOTH, "mcp-session-id": opened.header("mcp-session-id") or ""}
                assert service.post(INITIALIZED, headers).status == 202
                assert service.post(call(1, "search", {"words": "a"}), headers).json()["id"] == 1
                assert service.post(request(2, "ping"), headers).json()["result"] == {}
            process.terminate()
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
