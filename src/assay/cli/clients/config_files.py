"""Read and atomically replace configuration files of other programs."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assay.base.atomic_file import replace_file
from assay.cli.clients.jsonc import LONGEST

BACKUP: Final = ".assay-backup"
"""The suffix of a backup."""

_PRIVATE: Final = 0o600
"""The permissions of a backup: it has the secrets of the file, and no other program needs it."""


class FileError(Exception):
    """A file cannot be read or replaced."""


@dataclass(frozen=True, slots=True)
class FoundConfig:
    """A file as it was read: its real path, content, owner and permissions."""

    path: Path
    content: bytes
    status: os.stat_result

    @property
    def text(self) -> str:
        """The content as text, including a byte order mark. Raises `FileError`."""
        try:
            return self.content.decode()
        except UnicodeDecodeError as error:
            raise FileError(f"not UTF-8: byte {error.start + 1:,}") from None

    @property
    def backup(self) -> Path:
        """The path of the backup."""
        return self.path.with_name(self.path.name + BACKUP)


def find(name: str) -> FoundConfig:
    """Read the file called *name*, following links. Raises `FileError`."""
    try:
        path = Path(name).resolve(strict=True)
        # Checked before opening: opening a pipe would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileError("not a file")
        with path.open("rb") as file:
            content, status = file.read(LONGEST + 1), os.fstat(file.fileno())
    except (OSError, RuntimeError) as error:
        # Python 3.11 and 3.12 raise RuntimeError for a link to itself.
        raise FileError(_reason(error)) from None
    if len(content) > LONGEST:
        raise FileError(f"longer than {LONGEST:,} bytes")
    return FoundConfig(path, content, status)


def backup_of(found: FoundConfig) -> str | None:
    """Return the text of the backup of *found*; None if it does not exist or cannot be read."""
    try:
        return find(str(found.backup)).text
    except FileError:
        return None


def exchange(found: FoundConfig, content: str, backup: str | None = None) -> None:
    """
    Write the *backup*, if there is one, then replace the content of *found*. Raises `FileError`.

    A file that another program has changed since it was read is not overwritten.
    """
    if not os.access(found.path, os.W_OK):
        raise FileError("it is read-only")
    if find(str(found.path)).content != found.content:
        raise FileError("it has changed in the meantime; nothing was written")
    fresh = backup is not None and not found.backup.exists()
    if backup is not None:
        _replace(found.backup, backup.encode(), found.status, rights=_PRIVATE)
    try:
        _replace(found.path, content.encode(), found.status)
    except FileError:
        if fresh:
            found.backup.unlink(missing_ok=True)
        raise


def forget_backup(found: FoundConfig) -> None:
    """Remove the backup of *found*, if there is one."""
    with suppress(OSError):
        found.backup.unlink(missing_ok=True)


def _replace(path: Path, content: bytes, like: os.stat_result, rights: int | None = None) -> None:
    try:
        replace_file(path, content, like, rights=rights)
    except OSError as error:
        raise FileError(f"cannot write {path.name}: {_reason(error)}") from None


def _reason(error: OSError | RuntimeError) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "a link to itself"
