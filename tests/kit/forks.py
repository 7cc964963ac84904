"""
Run tests in several processes, which are forked when all tests are collected: `pytest --forks 4`.

Workers of pytest-xdist each import and collect every test, and pass each report through three processes: on two cores
that is a minute of a processor for twenty thousand tests. Here a process takes the next file when it is done with one,
so the order of files is kept, and the tests of a file run in one process. It is for systems that can fork.
"""

import os
import pickle
import random
import select
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

import pytest
from _pytest._io import TerminalWriter

NUMBER = 4
"""Bytes of a number on a pipe."""


class Forks:
    """The process that has collected the tests: forks, and reports what the others send."""

    def __init__(self, config: pytest.Config, begin: Callable[[], None]) -> None:
        self.config = config
        self.begin = begin
        """Called first in each forked process."""
        self.missing: dict[str, pytest.Item] = {}
        """Tests that have not been reported."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests. A process that was forked returns from here as well, and ends as pytest does."""
        if session.testsfailed or self.config.option.collectonly:
            return None
        self.missing = {item.nodeid: item for item in session.items}
        files = _by_file(session.items)
        numbers, jobs = os.pipe()
        os.write(jobs, b"".join(number.to_bytes(NUMBER) for number in range(len(files))))
        os.close(jobs)
        temporary = self.config._tmp_path_factory  # type: ignore[attr-defined]  # there is no public name
        base = temporary.getbasetemp()
        workers: dict[int, int] = {}
        for number in range(self.config.getoption("forks")):
            ours, theirs = os.pipe()
            process = os.fork()
            if not process:
                os.close(ours)
                temporary._basetemp = base / f"process-{number}"
                temporary._basetemp.mkdir()
                self._work(files, numbers, theirs)
                return True
            os.close(theirs)
            workers[ours] = process
        os.close(numbers)
        self._report(session, workers)
        return True

    # ── in a forked process ──────────────────────────────────────────────────────────────────────────────────────────

    def _work(self, files: list[list[pytest.Item]], numbers: int, sink: int) -> None:
        """Run files until there are no more."""
        plugins = self.config.pluginmanager
        plugins.unregister(self)
        for name in ("terminalreporter", "again", "lfplugin", "nfplugin", "stepwiseplugin"):
            if plugins.has_plugin(name):
                plugins.unregister(name=name)
        # A test that takes too long fails for that only if there is a terminal to print the stacks of threads on.
        plugins.register(_Terminal(), "terminalreporter")
        # The files that output is captured in are shared with the other processes until here.
        capture = plugins.getplugin("capturemanager")
        if capture is not None:
            capture.stop_global_capturing()
            capture.start_global_capturing()
        random.seed()
        self.begin()
        plugins.register(_Sender(self.config, sink))
        for item, following in _in_turn(files, numbers):
            self.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    # ── in the process that has collected them ───────────────────────────────────────────────────────────────────────

    def _report(self, session: pytest.Session, workers: dict[int, int]) -> None:
        """Report what *workers*, processes by the descriptor that they write to, send until they end."""
        with closing(_received(workers)) as reports:
            for report in reports:
                self.missing.pop(report["nodeid"], None)
                whole = self.config.hook.pytest_report_from_serializable(config=self.config, data=report)
                self.config.hook.pytest_runtest_logreport(report=whole)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
        for item in self.missing.values():
            said = "Its process ended before this test did."
            lost = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
            self.config.hook.pytest_runtest_logreport(report=lost)


class _Terminal:
    """The terminal of a forked process: its standard error, which is captured and reported with the test."""

    @property
    def _tw(self) -> TerminalWriter:
        """What pytest returns as the terminal of a configuration."""
        return TerminalWriter(sys.stderr)


class _Sender:
    """Sends the reports of each test when it is done."""

    def __init__(self, config: pytest.Config, sink: int) -> None:
        self._config = config
        self._sink = sink
        self._reports: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def pytest_runtest_logfinish(self) -> None:
        data = pickle.dumps(self._reports)
        self._reports.clear()
        rest = memoryview(len(data).to_bytes(NUMBER) + data)
        while rest:
            rest = rest[os.write(self._sink, rest) :]


def _by_file(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """Return *items* by file, in the order of the files."""
    found: dict[Any, list[pytest.Item]] = {}
    for item in items:
        found.setdefault(item.path, []).append(item)
    return list(found.values())


def _in_turn(files: list[list[pytest.Item]], numbers: int) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Yield each test of the files whose *numbers* this process gets, with the one after it."""
    waiting = _next_file(files, numbers)
    while waiting:
        item, *waiting = waiting
        # The next file is taken as late as possible: another process may be done earlier.
        waiting = waiting or _next_file(files, numbers)
        yield item, waiting[0] if waiting else None


def _next_file(files: list[list[pytest.Item]], numbers: int) -> list[pytest.Item]:
    data = os.read(numbers, NUMBER)
    return files[int.from_bytes(data)] if data else []


def _received(workers: dict[int, int]) -> Generator[Any]:
    """Yield the reports that *workers* send until all of them have ended. End those that are left."""
    buffers = {source: bytearray() for source in workers}
    running = dict(workers)
    try:
        while running:
            for source in select.select([*running], [], [])[0]:
                data = os.read(source, 1 << 20)
                if not data:
                    os.waitpid(running.pop(source), 0)
                buffers[source] += data
                yield from _taken(buffers[source])
    finally:
        for process in running.values():
            os.kill(process, signal.SIGINT)
            os.waitpid(process, 0)
        for source in workers:
            os.close(source)


def _taken(buffer: bytearray) -> Iterator[Any]:
    """Take whole messages off the beginning of *buffer*; yield the reports in them."""
    while len(buffer) >= NUMBER and len(buffer) >= (end := NUMBER + int.from_bytes(buffer[:NUMBER])):
        reports = pickle.loads(buffer[NUMBER:end])  # noqa: S301 - from a process that we forked
        del buffer[:end]
        yield from reports
