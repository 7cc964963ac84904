"""Our command: what it prints, and its exit status. `assay` runs it in this process, `assay_process` in a new one."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import assay as package
from assay.cli.main import main

ASSAY = [sys.executable, "-m", "assay"]
SECONDS = 60
"""What a command may take; most take a tenth of a second."""

Done = subprocess.CompletedProcess[bytes]


class Screen(BytesIO):
    """An output that says of itself that it is a terminal."""

    def isatty(self) -> bool:
        return True


def assay(
    *arguments: str,
    said: bytes | str = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    typed: bytes | None = None,
    on_terminal: bool = False,
    **variables: str,
) -> Done:
    """
    Run `assay ARGUMENTS…` here, with *said* on standard input. *variables* come on top of *env*, or of our own.

    With *typed*, standard input is a terminal on which somebody types that; *on_terminal*, the outputs are one.
    """
    out, err = (Screen(), Screen()) if on_terminal else (BytesIO(), BytesIO())
    given = {**(os.environ if env is None else env), **variables}
    with surroundings(cwd, given), streams(_bytes(said), out, err, typed=typed):
        try:
            status: Any = main(arguments)
        except SystemExit as end:
            status = end.code or 0
        sys.stdout.flush()
        sys.stderr.flush()
    return subprocess.CompletedProcess(["assay", *arguments], status, out.getvalue(), err.getvalue())


def assay_text(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `assay ARGUMENTS…` as `assay` does, all in text."""
    return in_text(assay(*arguments, **options))


def assay_process(
    *arguments: str,
    said: bytes | str = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    **variables: str,
) -> Done:
    """Run `assay ARGUMENTS…` as a process."""
    return subprocess.run(
        [*ASSAY, *arguments],
        input=_bytes(said),
        capture_output=True,
        check=False,
        timeout=SECONDS,
        cwd=cwd,
        env={**(os.environ if env is None else env), **variables},
    )


def assay_process_text(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `assay ARGUMENTS…` as `assay_process` does, all in text."""
    return in_text(assay_process(*arguments, **options))


def in_text(done: Done) -> subprocess.CompletedProcess[str]:
    """Return the same, decoded."""
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def variables_but(*prefixes: str) -> dict[str, str]:
    """Return our environment without the variables that begin with one of *prefixes*."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


@contextmanager
def surroundings(cwd: Path | None, env: Mapping[str, str]) -> Iterator[None]:
    """Have this directory and these variables, and the arguments of a program, for a while."""
    directory, environment, argv = Path.cwd(), dict(os.environ), sys.argv
    os.chdir(cwd or directory)
    _replace_environment(env)
    sys.argv = [str(Path(package.__file__).with_name("__main__.py"))]
    try:
        yield
    finally:
        sys.argv = argv
        _replace_environment(environment)
        os.chdir(directory)


def _replace_environment(env: Mapping[str, str]) -> None:
    for name in os.environ.keys() - env.keys():
        del os.environ[name]
    os.environ.update(env)


@contextmanager
def streams(said: bytes, out: BinaryIO, err: BinaryIO, *, typed: bytes | None = None) -> Iterator[None]:
    """Have these standard streams for a while. Commands read the descriptor of standard input itself."""
    before = sys.stdin, sys.stdout, sys.stderr
    descriptor = os.dup(0)
    keyboard = _terminal_as_input(typed) if typed is not None else _file_as_input(said)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - closed below
    sys.stdout, sys.stderr = wrappers = _text(out), _text(err, "backslashreplace")
    try:
        yield
    finally:
        sys.stdin.close()
        os.dup2(descriptor, 0)
        os.close(descriptor)
        os.close(keyboard)
        sys.stdin, sys.stdout, sys.stderr = before
        for each in wrappers:
            # What is in it is wanted after it is closed.
            each.detach()


def _file_as_input(said: bytes) -> int:
    """Have *said* on standard input; return a descriptor to close."""
    with TemporaryFile() as file:
        file.write(said)
        file.seek(0)
        os.dup2(file.fileno(), 0)
        return os.dup(file.fileno())


def _terminal_as_input(typed: bytes) -> int:
    """Have a terminal as standard input; return its other side, which is to be closed."""
    ours, theirs = os.openpty()
    os.write(ours, typed)
    os.dup2(theirs, 0)
    os.close(theirs)
    return ours


def _text(stream: BinaryIO, errors: str = "strict") -> TextIOWrapper:
    return TextIOWrapper(stream, encoding="utf-8", errors=errors, write_through=True)


def _bytes(said: bytes | str) -> bytes:
    return said.encode() if isinstance(said, str) else said
