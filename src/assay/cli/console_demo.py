"""The demonstration of a console: the bundled server behind a guard over HTTP, and some calls to it."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

from assay.cli.demonstration.demo_comparison import SERVER
from assay.console.api_values import CallFailedError, CallWish
from assay.console.tool_caller import ToolCaller

if TYPE_CHECKING:
    from assay.settings import Settings

_GUARD: Final = "assay.cli.demonstration.demo_guard"
_NAME: Final = "demo"
_OPTIONS: Final = ("--mode", "enforce", "--lock", "off", "--name", _NAME, "--set", "journal.payloads=true")

_CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    *(("weather", {"city": "Paris"}), ("weather", {"city": 5})),
    *(("report", {}), ("weather", {"city": "Oslo"})),
)
"""A good call, one with a wrong argument, one that crashes the server, and one after that."""

_SECONDS: Final = 10.0
"""Time that the guard has to end."""


class ConsoleDemo:
    """The guard of the demonstration, which is started once. `with` ends it."""

    def __init__(self, settings: Settings) -> None:
        self._caller = ToolCaller(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._url = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def __call__(self) -> str:
        """Start the guard unless it runs, call the tools, and return the name of the server."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            for tool, arguments in _CALLS:
                # Two of the calls fail: that is what the demonstration shows.
                with suppress(CallFailedError):
                    self._caller(CallWish(self._url, tool, arguments, confirmed=True, authorization=""))
        return _NAME

    def _start(self) -> None:
        # -P: a module in the working directory must not run in place of one of ours.
        command = [sys.executable, "-P", "-m", _GUARD, *_OPTIONS, "--listen", "127.0.0.1:0", "--", *SERVER]
        # The guard ends when its output has no reader: so it does also if this process is killed.
        process = self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        if process.stderr is None:
            raise CallFailedError("the guard of the demonstration has no output")
        lines = []
        for raw in process.stderr:
            line = raw.decode(errors="replace").strip()
            lines.append(line)
            _, mark, rest = line.partition("http://")
            if mark:
                self._url = f"http://{rest.split()[0].rstrip(';,')}"
                # Nothing reads further lines otherwise, and a full pipe would stop the guard's log.
                threading.Thread(target=_drain, args=(process,), daemon=True).start()
                return
        raise CallFailedError(f"the guard of the demonstration ended: {lines[-1] if lines else 'no output'}")


def _drain(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError, ValueError):
        for _ in process.stderr or ():
            pass
