"""Which of several servers a line on stderr is about: ``assay: [files] …``. No I/O."""

from collections.abc import Callable
from typing import Final

from assay.base.printable import plain

OURS: Final = "assay: "
"""How every line of the guard begins: on the same stderr there is what servers write."""


def label(name: str) -> str:
    """Return the label of a server, which is before each line of its stderr as well."""
    return f"[{plain(name)}] "


def labelled(say: Callable[[str], None], name: str) -> Callable[[str], None]:
    """Return *say* for lines of the guard about the server *name*; without a name, *say* itself."""
    head = f"{OURS}{label(name)}"
    return (lambda line: say(head + line.removeprefix(OURS))) if name else say
