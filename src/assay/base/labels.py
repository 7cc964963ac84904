"""Label lines on stderr with the name of their server: ``assay: [files] …``. No I/O."""

from collections.abc import Callable
from typing import Final

from assay.base.printable import plain

OURS: Final = "assay: "
"""The prefix of every line of the guard: servers write to the same stderr."""


def label(name: str) -> str:
    """Return the label of a server, which is also put before each line of its stderr."""
    return f"[{plain(name)}] "


def labelled(say: Callable[[str], None], name: str) -> Callable[[str], None]:
    """Return *say* for lines of the guard about the server *name*; without a name, *say* itself."""
    head = f"{OURS}{label(name)}"
    return (lambda line: say(head + line.removeprefix(OURS))) if name else say
