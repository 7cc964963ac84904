"""
Run a few failed tests once more, alone: `pytest --again 3`.

Thousands of tests with real processes, sockets and pages run side by side on two cores, and a stranger's machine may
stop for seconds. A test that fails there and passes alone does not fail the run, but the end of the run names it: it
depends on time or on its neighbours, or the product does. A fault that is always there fails both times.
"""

import os
import subprocess
import sys

import pytest


class Again:
    """Remembers the tests that failed, and runs them again at the end unless there are more than *most*."""

    def __init__(self, config: pytest.Config, most: int) -> None:
        self.config = config
        self.most = most
        self.failed: dict[str, None] = {}
        self.has_passed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a test that failed, or whose set-up or end did."""
        if report.failed:
            self.failed[report.nodeid] = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Run them in a new process, one after the other; its outcome is that of the run."""
        if exitstatus != pytest.ExitCode.TESTS_FAILED or not 0 < len(self.failed) <= self.most:
            return
        capture = self.config.pluginmanager.getplugin("capturemanager")
        assert capture is not None
        with capture.global_and_fixture_disabled():
            print(f"\nOnce more, alone: {len(self.failed)} failed", flush=True)
            done = subprocess.run([*self._command(), *self.failed], cwd=self.config.rootpath, check=False)
        if done.returncode == pytest.ExitCode.OK:
            self.has_passed = True
            session.exitstatus = pytest.ExitCode.OK

    def _command(self) -> list[str]:
        places = ["-c", str(self.config.inipath or os.devnull), f"--rootdir={self.config.rootpath}"]
        return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *places]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them, so that no run passes without a word about them."""
        if self.has_passed:
            terminalreporter.section("failed beside others, passed alone: to be repaired", yellow=True)
            for name in self.failed:
                terminalreporter.line(f"UNSTABLE {name}")
