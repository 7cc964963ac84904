"""Run a command while tests are collected: `pytest --meanwhile "make ready"`. Tests begin when it has succeeded."""

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
            self.process = subprocess.Popen(command, shell=True)  # noqa: S602

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Wait for its end."""
        status = self.process.wait()
        if status:
            pytest.exit(f"{self.command} has failed", returncode=status)
