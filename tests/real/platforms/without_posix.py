"""
Importing this takes from the interpreter what Python on Windows does not have. Programs import it before all else.

Not a Windows: paths, files and processes stay those of this system. The lists are those of the library reference
("Availability: Unix") for what Assay or the modules it imports could touch.
"""

import os
import select
import shutil  # noqa: F401 - asks sys.platform what to import, and there is no _winapi here
import signal
import socket
import subprocess  # noqa: F401 - as above
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

MODULES = {"curses", "fcntl", "grp", "posix_ipc", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}

ATTRIBUTES: dict[ModuleType, tuple[str, ...]] = {
    os: (
        "O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_SYNC",
        "chown", "chroot", "ctermid", "fchdir", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid",
        "getgroups", "getloadavg", "getpgid", "getpgrp", "getsid", "getuid", "killpg", "lchown", "lockf", "mkfifo",
        "mknod", "nice", "openpty", "pidfd_open", "pipe2", "posix_spawn", "pread", "pwrite", "readv",
        "register_at_fork",
        "sched_getaffinity", "sendfile", "set_blocking", "setpgid", "setsid", "setuid", "statvfs", "sysconf", "uname",
        "wait", "wait3", "wait4", "waitid", "writev",
    ),
    select: ("epoll", "kqueue", "poll"),
    signal: (
        "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGTTIN",
        "SIGTTOU", "SIGUSR1", "SIGUSR2", "SIGWINCH", "alarm", "pause", "pthread_kill", "pthread_sigmask", "setitimer",
        "siginterrupt", "sigpending", "sigtimedwait", "sigwait",
    ),
    socket: ("AF_UNIX", "SO_REUSEPORT", "recv_fds", "send_fds", "socketpair"),
}  # fmt: skip


class _Missing:
    """A finder in front of all others that knows of modules that they are not there."""

    def find_spec(self, name: str, *_: Sequence[str] | ModuleType | None) -> ModuleSpec | None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


for _name in MODULES:
    sys.modules.pop(_name, None)
sys.meta_path.insert(0, _Missing())
for _module, _names in ATTRIBUTES.items():
    for _name in _names:
        if hasattr(_module, _name):
            delattr(_module, _name)
sys.platform = "win32"
