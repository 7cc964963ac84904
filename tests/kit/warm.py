"""
Start Python programs without paying for their imports each time: a process that has imported them forks.

A run of the suite starts more than two thousand processes of ours, and most of their time goes into imports. What this
starts is a process like any other, with its own streams, environment, directory, signals, exit status and clean-up; it
is a child of the tests that may be awaited and killed. Only the time of its start is not the subject of any test here:
tests of that use an interpreter of their own, by starting it with other words (`python -c`), or with a wrapper.

The file is also the program that forks (`python warm.py MODULE…`), so it imports nothing but the standard library.
"""

import array
import atexit
import ctypes
import gc
import importlib
import importlib.util
import io
import json
import marshal
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

PR_SET_CHILD_SUBREAPER = 36
MEASURED = "COVERAGE_PROCESS_CONFIG"
"""The variable by which coverage measures the processes that a measured process starts."""

TEXT = "# warm start\n"
"""How the text of a program (`python -c TEXT`) begins that depends on nothing that happens before its imports."""

MOST_BYTES = 1 << 20
"""Of a request: arguments and environment."""

READY = b"ready"
"""What the process that forks sends when it has imported its modules."""


# ── the side of the tests ────────────────────────────────────────────────────────────────────────────────────────────


_ADOPTING = threading.Lock()
"""Held while this process adopts orphans: there is one such switch, and tests start processes in several threads."""


class WarmStart:
    """
    Starts programs of one interpreter, whose modules are imported once.

    The process that forks them is started with the first one, with *environment*, or with ours.
    """

    def __init__(
        self, python: str, programs: Sequence[str], *modules: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.python = python
        self._programs = tuple(programs)
        self._modules = modules
        # Not what they are later: a test that sets PYTHONPATH means the interpreter that reads it.
        self._settings = _settings(os.environ if environment is None else environment)
        self._environment = environment
        self._measured = os.environ.get(MEASURED, "")
        self._link: socket.socket | None = None
        self._place: str | None = None
        """A directory with the socket for launchers."""

    def fits(self, arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Whether a process with *arguments* can be started here: the interpreter reads its own settings only once."""
        return self._knows(arguments) and self._starts_in(environment)

    def _starts_in(self, environment: Mapping[str, str]) -> bool:
        return sys.platform.startswith("linux") and _settings(environment) == self._settings

    def _knows(self, arguments: Sequence[str]) -> bool:
        """Whether *arguments* run a module, a text or a file that begins like one of `programs`."""
        python, program, *rest = [*arguments, ""]
        if program in {"-m", "-c"}:
            program = rest[0]
        return python == self.python and program.startswith(self._programs)

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        streams: Sequence[int],
        others: Sequence[int],
        new_session: bool,
    ) -> int:
        """Start `python ARGUMENTS…`; return its process id. *others* are descriptors that keep their number."""
        request = [list(arguments[1:]), dict(environment), directory, list(others), new_session]
        descriptors = array.array("i", [*streams, *others])
        with _ADOPTING:
            link = self._link or self._begin()
            _adopt_orphans(True)
            try:
                link.sendmsg([json.dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
                return int(link.recv(64))
            finally:
                _adopt_orphans(False)

    def launcher(self, environment: Mapping[str, str]) -> list[str]:
        """Return what a process that is not ours, with *environment*, starts in place of our interpreter."""
        if not self._starts_in(environment):
            return [self.python]
        with _ADOPTING:
            link = self._link or self._begin()
            if self._place is None:
                # Not where pytest keeps files: the name of a socket has at most a hundred characters.
                self._place = tempfile.mkdtemp(prefix="assay-warm-")
                link.send(json.dumps(f"{self._place}/socket").encode())
                link.recv(64)
        return [self.python, "-IS", os.path.join(os.path.dirname(__file__), "launcher.py"), f"{self._place}/socket"]

    def close(self) -> None:
        """End the process that forks."""
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)
            self._place = None

    def _begin(self) -> socket.socket:
        link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (link, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST_BYTES)
        # Not by Popen: this one outlives the tests, and ends when the link does.
        null = os.open(os.devnull, os.O_RDWR)
        command = [self.python, __file__, self._measured, *self._modules]
        streams = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, theirs.fileno(), 1)]
        environment = os.environ if self._environment is None else self._environment
        plain = {name: value for name, value in environment.items() if name != MEASURED}
        os.posix_spawn(self.python, command, plain, file_actions=streams, setsigdef=[signal.SIGPIPE])
        os.close(null)
        theirs.close()
        _wait_until_ready(link)
        self._link = link
        return link


def _wait_until_ready(link: socket.socket) -> None:
    """
    Wait until the process at the other end of *link* has imported its modules.

    This is not counted as time of the test that needs the process first: on a slow machine, where several of them
    start at once and Python has nothing compiled yet, it has taken longer than the limit of a test.
    """
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        if link.recv(64) != READY:
            raise RuntimeError("the process that starts programs has ended; see standard error")
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)


_WITHOUT_EFFECT = {"PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONPYCACHEPREFIX", "PYTHONUNBUFFERED"}
"""Settings that are of no matter once modules are imported, or that `_open_streams` reads again."""


def _settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what an interpreter reads as it starts."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")) and name not in _WITHOUT_EFFECT
    }


def _adopt_orphans(on: bool) -> None:
    """
    Make this process the parent of descendants whose parent ends, or stop that.

    The process that forks hands over its child by that. At other times orphans go to where they always go: tests look
    whether they have ended, and a child that is not awaited would seem to be there.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


# ── the side that forks ──────────────────────────────────────────────────────────────────────────────────────────────


def serve(link: socket.socket) -> Any:
    """Serve the tests, and launchers where the tests ask for that. Return in the child, with its request."""
    listeners: list[socket.socket] = []
    while True:
        source = select.select([link, *listeners], [], [])[0][0]
        request = _serve_tests(link, listeners) if source is link else _serve_launcher(source)
        if request is not None:
            return request


def _received(link: socket.socket) -> tuple[bytes, list[int]]:
    """Return a request and its descriptors; an empty one if there are no more."""
    message, ancillary, _, _ = link.recvmsg(MOST_BYTES, socket.CMSG_SPACE(64 * 4))
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data)
    return message, list(descriptors)


def _serve_tests(link: socket.socket, listeners: list[socket.socket]) -> Any:
    """Listen for launchers, or fork twice, so that the child is an orphan. Return in the child, with its request."""
    message, descriptors = _received(link)
    if not message:
        os._exit(0)
    request = json.loads(message)
    if isinstance(request, str):
        listeners.append(_listening(request))
        link.send(b"0")
        return None
    told, tell = os.pipe()
    adopted, adopt = os.pipe()
    between = os.fork()
    if not between:
        child = os.fork()
        os.close(adopt)
        if not child:
            os.read(adopted, 1)
            return request, descriptors
        os.write(tell, str(child).encode())
        os._exit(0)
    # The tests are the parent of the child only when this has ended.
    os.waitpid(between, 0)
    link.send(os.read(told, 64))
    for each in (told, tell, adopted, adopt, *descriptors):
        os.close(each)
    return None


def _listening(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    return listener


def _serve_launcher(listener: socket.socket) -> Any:
    """Fork the child and a process that attends to it. Return in the child, with its request."""
    launcher, _ = listener.accept()
    message, descriptors = _received(launcher)
    between = os.fork() if message else None
    if between == 0:
        if os.fork():
            os._exit(0)
        child = os.fork()
        if not child:
            return marshal.loads(message), descriptors  # noqa: S302 - only we may write to the socket
        for each in descriptors:
            os.close(each)
        _attend(launcher, child)
    if between is not None:
        os.waitpid(between, 0)
    launcher.close()
    for each in descriptors:
        os.close(each)
    return None


def _attend(launcher: socket.socket, child: int) -> NoReturn:
    """Pass signals on to *child*, and its exit status to *launcher*. Kill it when the launcher is gone."""
    end = os.pidfd_open(child)
    sources: list[int] = [launcher.fileno(), end]
    while end not in select.select(sources, [], [])[0]:
        number = launcher.recv(1)
        os.kill(child, number[0] if number else signal.SIGKILL)
    with suppress(OSError):
        launcher.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    os._exit(0)


def become(request: Any, descriptors: list[int]) -> list[str]:
    """Take over what the request gives this process; return the arguments."""
    arguments, environment, directory, others, new_session = request
    if new_session:
        os.setsid()
    _place(descriptors, [0, 1, 2, *others])
    os.chdir(directory)
    # From the beginning, because some programs show the variables in their order.
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _open_streams()
    return list(arguments)


def _place(given: list[int], wanted: list[int]) -> None:
    """Give each descriptor the number it is wanted at, and close all others."""
    above = [os.dup2(each, 1000 + number) for number, each in enumerate(given)]
    os.closerange(0, 1000)
    for source, target in zip(above, wanted, strict=True):
        os.dup2(source, target)
        os.close(source)


def _open_streams() -> None:
    """Open the standard streams as an interpreter does that starts."""
    unbuffered = "PYTHONUNBUFFERED" in os.environ
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        old = getattr(sys, name)
        raw: Any = open(number, f"{mode}b", buffering=0 if unbuffered and number else -1, closefd=False)  # noqa: SIM115
        new = io.TextIOWrapper(
            raw,
            old.encoding,
            old.errors,
            "\n",
            line_buffering=not unbuffered and (number == 2 or raw.isatty()),
            write_through=unbuffered,
        )
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def preload(names: Sequence[str]) -> None:
    """Import modules; for `package.*`, all that it has, but for those that `-module` names."""
    omitted = {name[1:] for name in names if name.startswith("-")}
    for name in names:
        if name.startswith("-"):
            continue
        module = importlib.import_module(name.removesuffix(".*"))
        for each in pkgutil.walk_packages(module.__path__, name[:-1]) if name.endswith(".*") else ():
            if not each.name.endswith("__main__") and each.name not in omitted:
                importlib.import_module(each.name)
    gc.collect()
    # Nothing of this is garbage, and a collection would copy all of its pages.
    gc.freeze()


def run(arguments: list[str]) -> None:
    """Run the program as `python ARGUMENTS…` does."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.path[0] = ""
        exec(arguments[1], {"__name__": "__main__"})  # noqa: S102
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(arguments[0])
        runpy.run_path(arguments[0], run_name="__main__")


def leave(status: int) -> None:
    """
    End the process without taking the modules apart, which is most of what is left of its cost.

    All else that an interpreter does at its end is done; where something fails, it comes back for the usual end.
    """
    with suppress(OSError, ValueError):
        threading._shutdown()  # type: ignore[attr-defined]  # private, as what an interpreter does at its end
        atexit._run_exitfuncs()
        gc.collect()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def stop_measuring() -> None:
    """End the measurement that this process has from the one that forked it, and write nothing."""
    coverage = sys.modules.get("coverage")
    current = coverage.Coverage.current() if coverage is not None else None
    if current is not None:
        current.stop()
        # There is no public way to drop what was measured.
        current._auto_save = False


def main() -> None:
    """Serve; in a child, run the program it was asked for."""
    measured, *modules = sys.argv[1:]
    link = socket.socket(fileno=os.dup(1))
    preload(modules)
    if measured and importlib.util.find_spec("coverage"):
        # Started once: each child goes on with it, and writes what it has reached to a file of its own.
        os.environ[MEASURED] = measured
        importlib.import_module("coverage").process_startup(slug="warm")
    link.send(READY)
    arguments = become(*serve(link))
    if measured and MEASURED not in os.environ:
        stop_measuring()
    try:
        run(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            leave((end.code or 0) & 0xFF)
        raise
    leave(0)


if __name__ == "__main__":
    main()
