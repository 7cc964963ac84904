"""
Stand for a Python program that a process which is not ours starts, such as a shell or a client in another language.

    python -IS launcher.py SOCKET ARGUMENT…    as `python ARGUMENT…`

The program is forked by the process at SOCKET (`warm.py`), with the streams, environment and directory of this one.
This one passes signals on, and ends as the program does; if it is killed, the program is killed too. It imports only
what an interpreter has built in: anything else would take longer than all the rest.
"""

import _signal  # type: ignore[import-not-found]  # typeshed has no private one
import _socket
import array
import marshal
import os
import sys

FORWARDED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2)


def start(link: _socket.socket, arguments: list[str]) -> None:
    """Ask for the program. It has our streams from then on: one that it closes must be closed."""
    request = marshal.dumps([arguments, dict(os.environ), os.getcwd(), [], False])
    link.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def end(status: int) -> None:
    """End with an exit status, or by the signal of a negative one."""
    if status < 0:
        if status != -_signal.SIGKILL:
            _signal.signal(-status, _signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def main() -> None:
    path, *arguments = sys.argv[1:]
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    link.connect(path)
    for number in FORWARDED:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, lambda number, _: link.send(bytes([number])) and None)
    start(link, arguments)
    end(int(link.recv(64)))


if __name__ == "__main__":
    main()
