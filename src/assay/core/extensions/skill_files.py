"""
The content of a file of a skill, compared with the entry of the skill. No state, no I/O.

YAML is not parsed. Of a frontmatter only the lines of the name and of the description are read, and only where every
reader of YAML agrees about them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from assay.base.verdict import Violation
from assay.engine.wording import shown
from assay.rules import violation

FIELDS: Final = ("name", "description")
"""The fields of a frontmatter that are compared."""

MARKDOWN: Final = "text/markdown"

_MOST_HASHED: Final = 16 << 20
"""Bytes, or characters, of a content that is hashed: all files of a skill together have no more. It takes 15 ms, which
is less than parsing the frame."""

_LONGEST_HEAD: Final = 1 << 16
"""Characters at the beginning of a file that are searched for the frontmatter; a description has 1,024 at most."""

_NO_STRING: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""Words that YAML reads as something else than a string, in one of its versions."""

_UNCERTAIN: Final = re.compile(r" #|: |:$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
"""Parts of a value after which readers of YAML may differ: a comment, a key, a line break."""


class SkillFile(NamedTuple):
    """What the entry of a skill has of one file."""

    digest: bytes
    """SHA-256; b"" if the entry has an invalid digest."""
    size: int
    """Bytes; -1 if the entry has an invalid size."""

    def matches(self, data: bytes) -> bool:
        """Return whether *data* is the content of the file, as far as the entry is valid."""
        if self.size >= 0 and len(data) != self.size:
            return False
        return not self.digest or _sha256(data) == self.digest


def content_of(item: Mapping[str, Any]) -> bytes | None:
    """Return the bytes of one content of `resources/read`; None if there is no such, or too large to be hashed."""
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str):
        return text.encode(errors="replace") if len(text) <= _MOST_HASHED else None
    return _decoded(blob) if isinstance(blob, str) and len(blob) <= _MOST_HASHED * 4 // 3 + 4 else None


def _decoded(blob: str) -> bytes | None:
    from base64 import b64decode  # noqa: PLC0415 - only where there are skills

    try:
        return b64decode(blob, validate=True)
    except ValueError:
        # Another spelling of Base64: a client may read it all the same.
        return None


def _sha256(data: bytes) -> bytes:
    from hashlib import sha256  # noqa: PLC0415 - only where there are skills

    return sha256(data).digest()


def wrong_content(file: SkillFile, data: bytes, at: str, revision: str) -> Violation:
    """Return the violation of a content that is not that of the entry."""
    if file.size >= 0 and len(data) != file.size:
        expected, found = f"{file.size:,} bytes, as in the entry of the skill", f"{len(data):,} bytes"
    else:
        expected, found = f"the digest sha256:{file.digest.hex()}", f"sha256:{_sha256(data).hex()}"
    return violation("skills/verification", at, expected=expected, found=found, revision=revision)


def check_frontmatter(text: str, is_known: Mapping[str, bytes], at: str, revision: str) -> Iterator[Violation]:
    """Yield the violations of a SKILL.md; *is_known* has the digest of each field in the entry of the skill."""
    head = text[:_LONGEST_HEAD].removeprefix("\ufeff").replace("\r\n", "\n")
    if not head.startswith("---"):
        found = "an empty file" if not head else shown(head.partition("\n")[0])
        yield violation("skills/frontmatter", at, expected='"---" as the first line', found=found, revision=revision)
        return
    for name, value in certain_fields(head).items():
        if name in is_known and field_digest(value) != is_known[name]:
            expected = f"the {name} of the skill's entry"
            yield violation(
                "skills/frontmatter", at, expected=expected, found=f"{name}: {shown(value)}", revision=revision
            )


def certain_fields(head: str) -> dict[str, str]:
    """Return the name and the description in a frontmatter, as far as every reader of YAML reads the same."""
    lines = head.split("\n")
    ends = (number for number, line in enumerate(lines) if number and line.rstrip() in ("---", "..."))
    end = next(ends, 0)
    found = {name: _value(name, lines[1 : end + 1]) for name in FIELDS} if lines[0].rstrip() == "---" else {}
    return {name: value for name, value in found.items() if value is not None}


def _value(name: str, lines: list[str]) -> str | None:
    """Return the value of *name*; the last of *lines* ends the frontmatter."""
    numbers = [number for number, line in enumerate(lines) if line.startswith(f"{name}:")]
    if len(numbers) != 1:
        return None
    following = next(line for line in lines[numbers[0] + 1 :] if line.strip())
    # A line that begins with white space continues the value.
    return None if following[0] in " \t" else _scalar(lines[numbers[0]].removeprefix(f"{name}:"))


def _scalar(text: str) -> str | None:
    value = text.strip(" \t")
    if not value or text[0] not in " \t" or value in ('"', "'"):
        return None
    for quote, special in (('"', '"\\'), ("'", "'")):
        if value[0] == quote == value[-1]:
            inside = value[1:-1]
            return inside if not any(each in inside for each in special) and inside.isprintable() else None
    is_text = value[0].isalpha() and value.lower() not in _NO_STRING
    return value if is_text and _UNCERTAIN.search(value) is None else None


def field_digest(value: str) -> bytes:
    """Return a digest of a field, which may be long."""
    from hashlib import blake2b  # noqa: PLC0415 - only where there are skills

    return blake2b(value.encode(errors="replace"), digest_size=16).digest()
