"""
The commands that need POSIX, and the message for a system that is not POSIX.

The commands that start servers or wait for pipes need process groups, signals, `poll` and locked files. All other
commands read and write plain files, and run wherever Python does.
"""

from importlib import import_module
from typing import Final

NEED_POSIX: Final = frozenset({"call", "demo", "guard", "lock", "serve"})
"""The commands that need Linux or macOS."""

_USED: Final = (("fcntl", "flock"), ("os", "killpg"), ("select", "poll"), ("signal", "SIGHUP"), ("signal", "SIGKILL"))
"""The parts of POSIX that those commands use: a module, and a name in it."""


def refusal(command: str) -> str | None:
    """The reason why *command* cannot run on this system; None if it can."""
    if command not in NEED_POSIX or all(_has(module, name) for module, name in _USED):
        return None
    return f"assay {command} needs Linux or macOS for now"


def _has(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False
