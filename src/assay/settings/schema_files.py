"""Read JSON Schema files at run time: of a draft revision, or of an extension. Nothing is fetched."""

import os
import stat
from typing import Any, Final

from assay.spec.document_facts import DocumentError, DocumentFacts

LONGEST: Final = 4 << 20
"""Bytes of a file. The largest official one has 181,474; the rest of its limits are those of untrusted schemas."""


class SchemaFileError(Exception):
    """The file cannot be used; the message is one line, without the name of the file."""


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of the file at *path*. Raises `SchemaFileError`."""
    try:
        # Checked before opening: to open a pipe or a device may block.
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise SchemaFileError("not a regular file; expected a JSON Schema file")
        if status.st_size > LONGEST:
            raise SchemaFileError(_too_long(status.st_size))
        with open(path, "rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        raise SchemaFileError(error.strerror or str(error)) from None
    if len(content) > LONGEST:
        raise SchemaFileError(_too_long(len(content)))
    return content


def _too_long(size: int) -> str:
    return f"it has {size:,} bytes or more; the most is {LONGEST:,}"


def parsed(content: bytes) -> DocumentFacts:
    """Return the definitions in *content*. Raises `SchemaFileError`."""
    import orjson  # noqa: PLC0415 - only such a file needs it here

    try:
        document: Any = orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise SchemaFileError(f"not valid JSON: {error}") from None
    try:
        return DocumentFacts(document)
    except DocumentError as error:
        raise SchemaFileError(str(error)) from None
