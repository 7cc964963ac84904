"""
Processes that tests start: every one is known, and none survives a test that fails or times out.

`install()` puts `TrackedProcess` in the place of `subprocess.Popen`. `subprocess.run` and asyncio start their
processes through it too, so no test can forget it.
"""

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

started: list["TrackedProcess"] = []
"""Every process started since the last `forget_ended`, in order."""


class TrackedProcess(subprocess.Popen[Any]):
    """A process in the list of started ones; killed, not awaited, when its `with` block is left by an exception."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        started.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Popen waits here without a limit: a failed assertion about a server that runs on would hang for ever.
        if kind is not None:
            kill([self])
        super().__exit__(kind, error, trace)


def install() -> None:
    """Track every process that is started from now on, and let it start with the default signal handlers."""
    # mypy takes Popen for a constant; to replace it here is the point.
    subprocess.Popen = TrackedProcess  # type: ignore[misc]  # a class of the library, replaced for all tests
    default_signals()


def default_signals() -> None:
    """
    Stop ignoring the signals that the shell made us ignore, because children inherit that.

    `make test &` in a script ignores SIGINT and SIGQUIT, and nohup SIGHUP; tests send all of them. A handler that
    does nothing has the same effect here and is not inherited. Python itself ignores SIGPIPE and SIGXFSZ, and
    `Popen` restores them.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _, __: None)


def running(processes: Iterable["TrackedProcess"]) -> list["TrackedProcess"]:
    """Return those of *processes* that have not ended."""
    return [each for each in processes if each.poll() is None]


def forget_ended() -> int:
    """Drop ended processes from the list; return how many are left, which is where the next one goes."""
    started[:] = running(started)
    return len(started)


def kill(processes: Iterable["TrackedProcess"]) -> None:
    """
    Kill *processes* and what they started.

    They are not awaited: this may run in a signal handler that has interrupted `Popen.wait`, which holds a lock.
    """
    for ident in descendants(each.pid for each in running(processes)):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(ident, signal.SIGKILL)


def descendants(roots: Iterable[int]) -> list[int]:
    """Return *roots* and every process below them. A server may have a session of its own, so a group is not enough."""
    children: dict[int, list[int]] = {}
    for ident, parent in _parents():
        children.setdefault(parent, []).append(ident)
    found = list(roots)
    for ident in found:
        found += children.get(ident, ())
    return found


def _parents() -> Iterable[tuple[int, int]]:
    """Yield each process of the machine with its parent."""
    if not Path("/proc/self/stat").exists():
        listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        yield from ((int(ident), int(parent)) for ident, parent in map(str.split, listing.splitlines()))
        return
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # The name of the program is in brackets and may contain blanks and brackets.
            yield int(folder.name), int((folder / "stat").read_text().rpartition(")")[2].split()[1])
