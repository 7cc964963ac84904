"""
The digests that a server announces for the files of its skills, and the contents of these files compared with them.

No I/O, no clock. An entry counts until the server sends a newer one, or reports that its resources have changed. What
was forgotten is not judged.
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from assay.base.verdict import Exchange, Violation
from assay.core.extensions import skill_entries
from assay.core.history.reuse import object_of
from assay.rules import violation

_MOST_FILES: Final = 15_000
"""Files of one server that are remembered: 3 MB, or 7 MB if each skill has one file. A large catalogue has 1,000."""

_LONGEST_URI: Final = 2048
"""Characters of a URI whose directories are looked up. The longest known ones have 300."""


class SkillFile(NamedTuple):
    """What the entry of a skill announces for one file."""

    digest: bytes
    """SHA-256."""
    size: int | float
    """Bytes; a float if the server writes 5.0."""


class SkillRead(NamedTuple):
    """A file that is read, and what was announced for it when it was asked for."""

    uri: str
    files: list[SkillFile]


class SkillDigests:
    """The announced files of the skills of one server."""

    __slots__ = ("_changes", "_count", "_skills")

    def __init__(self) -> None:
        self._skills: dict[int, dict[int, SkillFile]] = {}
        """
        The files by their URIs, for each skill by its directory, the newest entry last.

        URIs are kept as hashes, so that the number of files bounds the memory.
        """
        self._count = 0
        """The number of files in all skills."""
        self._changes = 0
        """How often the server has reported changes."""

    def take_request(self, exchange: Exchange) -> None:
        """Note which changes came before a request for entries."""
        exchange.beyond = self._changes

    def learn(self, exchange: Exchange, entries: Any) -> None:
        """Remember the files of *entries*, from a result that was forwarded."""
        # A result that crosses the report of a change may be older than it. A request without params has no number.
        if exchange.beyond not in (None, self._changes) or not isinstance(entries, list):
            return
        for entry in map(object_of, entries):
            root = skill_entries.root_of(entry.get("uri"))
            self._forget(hash(root))
            if root and (files := _files(entry.get("resources"))):
                self._skills[hash(root)] = files
                self._count += len(files)
            while self._count > _MOST_FILES:
                self._forget(next(iter(self._skills)))

    def _forget(self, skill: int) -> None:
        self._count -= len(self._skills.pop(skill, ()))

    def changed(self, uri: Any = None) -> None:
        """Forget the skills around a resource that has changed; all skills if the server does not report which."""
        self._changes += 1
        for skill in list(self._skills) if uri is None else self._around(uri):
            self._forget(skill)

    def take_read(self, exchange: Exchange, uri: str) -> None:
        """Keep what is announced for a file that the client asks for."""
        files = self._announced(uri)
        if files:
            exchange.beyond = SkillRead(uri, files)

    def check_read(self, exchange: Exchange, result: Mapping[str, Any]) -> Iterator[Violation]:
        """Yield the violation of a content that is not the announced one."""
        read = exchange.beyond
        # An entry that came after the request may be older or newer than the content.
        if not isinstance(read, SkillRead) or self._announced(read.uri) != read.files:
            return
        contents = result.get("contents")
        items = [
            (number, each)
            for number, each in enumerate(contents if isinstance(contents, list) else ())
            if isinstance(each, dict) and each.get("uri") == read.uri
        ]
        data = _bytes_of(items[0][1]) if len(items) == 1 else None
        if data is None or (actual := SkillFile(sha256(data).digest(), len(data))) in read.files:
            return
        announced = read.files[0]
        if actual.size != announced.size:
            expected, found = f"{announced.size:,} bytes", f"{actual.size:,} bytes"
        else:
            expected, found = f"the digest sha256:{announced.digest.hex()}", f"sha256:{actual.digest.hex()}"
        at = f"/result/contents/{items[0][0]}"
        yield violation("skills/verification", at, expected=expected, found=found, revision=exchange.revision)

    def _announced(self, uri: str) -> list[SkillFile]:
        """Return what is announced for a file. Several entries may have it, because skills may be nested."""
        found = (self._skills[skill].get(hash(uri)) for skill in self._around(uri))
        return [each for each in found if each is not None]

    def _around(self, uri: Any) -> list[int]:
        """Return the skills whose directory *uri* is, or is in, the innermost first."""
        found = []
        here = uri if self._skills and isinstance(uri, str) and len(uri) <= _LONGEST_URI else ""
        while here:
            if hash(here) in self._skills:
                found.append(hash(here))
            here = here.rpartition("/")[0]
        return found


def _files(resources: Any) -> dict[int, SkillFile]:
    """Return the files of an entry by the hashes of their URIs, without those whose digest or size is invalid."""
    found = {}
    for each in map(object_of, resources if isinstance(resources, list) else ()):
        uri, digest, size = each.get("uri"), skill_entries.digest_of(each.get("digest")), each.get("size")
        if isinstance(uri, str) and digest and isinstance(size, int | float) and 0 <= size < 1 << 53:
            found[hash(uri)] = SkillFile(digest, size)
    return found


def _bytes_of(item: Mapping[str, Any]) -> bytes | None:
    """Return the bytes of one content of `resources/read`; None if there are none."""
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str):
        return text.encode(errors="replace")
    try:
        return b64decode(blob, validate=True) if isinstance(blob, str) else None
    except ValueError:
        # Another spelling of Base64: a client may read it all the same.
        return None
