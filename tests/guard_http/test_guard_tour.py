"""What `make run` runs: the guard in front of the asset server, and what it says to try."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE = 60


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[str]:
    """What it prints, while it runs; it ends well when it is asked to."""
    command = [sys.executable, str(ROOT / "examples" / "tour.py"), "127.0.0.1:0"]
    log = tmp_path / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors, text=True) as tour,
    ):
        assert tour.stdout is not None
        lines: list[str] = []
        for line in tour.stdout:
            lines.append(line)
            if line.startswith("Ctrl-C"):
                break
        yield "".join(lines)
        tour.send_signal(signal.SIGINT)
        assert tour.wait(PATIENCE) == 0
    assert "× contract/input in validate_asset" in log.read_text(encoding="utf-8")


def test_a_good_call_passes_and_a_bad_one_is_told_why(shown: str) -> None:
    assert '"ok": true' in shown
    assert "/params/arguments/schema: expected a string, found 5." in shown


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_what_it_says_to_try_can_be_tried(shown: str) -> None:
    tried = [
        json.loads(subprocess.run(["sh", "-c", line], check=True, capture_output=True, timeout=PATIENCE).stdout)
        for line in re.findall(r"^  (curl (?:.*\\\n)*.*)$", shown, flags=re.MULTILINE)
    ]
    good, bad = (each["result"] for each in tried)
    assert good["structuredContent"]["data"] == {"ok": True, "errors": []}
    assert bad["isError"] is True
    # And what is to go into a client's configuration is where the guard is.
    url = re.search(r'"url": "([^"]+)"', shown)
    assert url is not None
    assert f"The guard is at {url[1]}," in shown
