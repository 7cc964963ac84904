"""The files of the page, which are in the package: nothing is loaded from the network."""

from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = "index.html"

_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
"""The files that are served, by the end of their names; no others are."""


class WebFile(NamedTuple):
    """A file of the page."""

    content: bytes
    kind: str
    tag: str
    """A value for `ETag`."""


class WebFiles:
    """All files, found once: a name in a request is compared with them, and never becomes a path."""

    def __init__(self) -> None:
        root = Path(__file__).parents[1] / "web"
        found = (each for each in root.rglob("*") if each.suffix in _KINDS and each.is_file() and not each.is_symlink())
        self._paths = {each.relative_to(root).as_posix(): each for each in sorted(found)}

    @property
    def names(self) -> list[str]:
        """The names of all files."""
        return list(self._paths)

    def read(self, name: str) -> WebFile | None:
        """Return a file; None for an unknown name."""
        path = self._paths.get(name)
        if path is None:
            return None
        try:
            content = path.read_bytes()
        except OSError:
            return None
        return WebFile(content, _KINDS[path.suffix], f'"{sha256(content).hexdigest()[:32]}"')
