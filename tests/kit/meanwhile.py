"""Run a command while tests are collected: `pytest --meanwhile "make ready"`. Tests begin when it has succeeded."""

import os
import signal
import subprocess

import pytest


class Meanwhile:
    """The command, which shows what it has to say as it goes."""

    def __init__(self, config: pytest.Config, command: str) -> None:
        self.command = command
        capture = config.pluginmanager.getplugin("capturemanager")
        assert capture is not None
        with capture.global_and_fixture_disabled():
            # A line of a Makefile, as the shell of make would run it.
            self.process = subprocess.Popen(command, shell=True, start_new_session=True)  # noqa: S602

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Wait for its end, unless no test will run."""
        if session.testsfailed:
            return
        status = self.process.wait()
        if status:
            pytest.exit(f"{self.command} has failed", returncode=status)

    def pytest_unconfigure(self) -> None:
        """End it, with all that it has started, if the tests could not be collected."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait()
