"""A candidate that runs, however one talks to it: started, looked at, and ended in the end."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import Final

PATIENCE: Final = 120.0
"""Seconds until a candidate that does not answer is ended."""


class Running:
    """One process."""

    def __init__(self, command: list[str], environment: Mapping[str, str], *, piped: bool) -> None:
        """Its standard streams are ours if it is *piped*, and unbuffered; what else it says is kept for its end."""
        self._log = TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else self._log,
            stderr=self._log,
            env=environment,
            bufsize=0,
        )

    def memory(self) -> float | None:
        """Resident megabytes, where the system says so."""
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return None
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def close(self) -> None:
        """Wait for its end, or bring that about."""
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _cpu(self) -> float:
        """Seconds of CPU so far, in steps of a clock tick at worst; not a number where the system does not say."""
        with suppress(OSError, ValueError, IndexError):
            threads = Path(f"/proc/{self._process.pid}/task").iterdir()
            return sum(int((each / "schedstat").read_text(encoding="ascii").split()[0]) for each in threads) / 1e9
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return float("nan")
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """A candidate that hangs is killed, which the reader sees as the end of its answers."""
        timer = Timer(PATIENCE, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _ended(self) -> EOFError:
        """It says no more, and what it said last."""
        self._log.seek(0)
        return EOFError(f"the candidate has ended: {self._log.read().decode(errors='replace')[-2000:]}")
