"""
Processes that tests start: every one is known, and none survives a test that fails or times out.

`install()` puts `TrackedProcess` in the place of `subprocess.Popen`. `subprocess.run` and asyncio start their
processes through it too, so no test can forget it.
"""

import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from kit.places import TESTS
from kit.warm import MEASURED, TEXT, WarmStart

started: list["TrackedProcess"] = []
"""Every process started since the last `forget_ended`, in order."""


class TrackedProcess(subprocess.Popen[Any]):
    """A process in the list of started ones; killed, not awaited, when its `with` block is left by an exception."""

    def __init__(self, *args: Any, **options: Any) -> None:
        _leave_unmeasured(args, options)
        super().__init__(*args, **options)
        started.append(self)

    def _execute_child(self, *given: Any) -> None:
        """Fork from a process that has imported the program already, where that makes no difference to it."""
        # A private method, but the only place between the pipes being made and the program being started.
        bound = inspect.signature(super()._execute_child).bind(*given).arguments  # type: ignore[misc]  # private
        if _is_plain(bound) and (warm := _warm_start(bound)) is not None:
            self.pid = warm()
            self._child_created = True
            self._close_pipe_fds(*(bound[name] for name in _PIPES))  # type: ignore[attr-defined]  # private
        else:
            super()._execute_child(*given)  # type: ignore[misc]  # private

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Popen waits here without a limit: a failed assertion about a server that runs on would hang for ever.
        if kind is not None:
            kill([self])
        super().__exit__(kind, error, trace)


def _leave_unmeasured(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Do not measure `python -c`: tests of what is imported use it, and the measuring imports modules itself."""
    command = args[0] if args else options.get("args")
    # Not `-u -c`: that is how the workers of pytest are started, which are measured.
    words = list(command[1:3]) if isinstance(command, list | tuple) else []
    if MEASURED in os.environ and (words[:1] == ["-c"] or words == ["-B", "-c"]):
        environment = options["env"] if options.get("env") is not None else os.environ
        options["env"] = {name: value for name, value in environment.items() if name != MEASURED}


_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("executable", "preexec_fn", "gid", "gids", "uid"), None),
    **dict.fromkeys(("umask", "process_group"), -1),
    "close_fds": True,
    "shell": False,
}
"""Options that a process has to be started without, to be forked."""

_SDK_MODULES = (
    *("mcp", "mcp_types", "mcp.client.stdio", "mcp.client.streamable_http", "mcp.server.lowlevel"),
    *("mcp.server.stdio", "mcp.server.streamable_http", "uvicorn"),
)
_RARE = ("-assay.records.telemetry.exporting",)
"""Modules whose libraries are a third of the memory that a fork has to copy. Few processes need them."""

WARM: tuple[WarmStart, ...] = (
    WarmStart(sys.executable, ["assay", f"{TESTS}/", TEXT], "assay.*", *_RARE, "warm_talk"),
    # The official SDK takes almost a second to import.
    WarmStart(str(TESTS.parent / ".venvs" / "sdk" / "bin" / "python"), [f"{TESTS}/"], *_SDK_MODULES),
)


def _is_plain(options: Mapping[str, Any]) -> bool:
    """Whether a process is started without options that only the system call knows."""
    return all(options.get(name, value) == value for name, value in _DEFAULTS.items())


def _warm_start(options: Mapping[str, Any]) -> Callable[[], int] | None:
    """Return what starts the process by a fork; None if it must be started as usual."""
    if isinstance(options["args"], str | bytes):
        return None
    arguments = [os.fsdecode(each) for each in options["args"]]
    environment = os.environ if options["env"] is None else options["env"]
    directory = os.path.realpath(options["cwd"] or os.getcwd())
    for warm in WARM:
        if warm.fits(arguments, environment) and os.path.isdir(directory):
            streams = [options["p2cread"], options["c2pwrite"], options["errwrite"]]
            streams = [number if given == -1 else given for number, given in enumerate(streams)]
            return partial(
                warm.start,
                arguments,
                environment,
                directory,
                streams,
                options["pass_fds"],
                bool(options["start_new_session"]),
            )
    return None


def launcher(python: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """
    Return what a process that is not ours, such as a client, starts in place of *python*.

    It starts a program with *environment*, or with ours. For another interpreter, or with other settings of it, it is
    *python* itself.
    """
    for warm in WARM:
        if warm.python == python:
            return warm.launcher(os.environ if environment is None else environment)
    return [python]


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


def end_warm_starts() -> None:
    """End the processes that fork."""
    for each in WARM:
        each.close()


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
