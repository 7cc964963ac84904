"""
Violations of the entry of one skill, as `skills/list` and `skills/get` have it. No state, no I/O.

The entry fits its schema already, unless invalid messages are forwarded.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

from assay.base.verdict import Violation
from assay.contracts.tool_lists import MOST_QUARANTINED
from assay.engine.pointers import escaped
from assay.engine.wording import shown
from assay.rules import violation

_FILE: Final = "/SKILL.md"
"""The end of the URI of every skill."""

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_LONGEST_NAME: Final = 64
_RESERVED: Final = "io.modelcontextprotocol/"

_MOST_FILES: Final = 512
_MOST_BYTES: Final = 16_777_216
"""The limits of one skill that every client has to support, by the specification."""

_MOST_OF_ONE: Final = 8
"""Violations of one skill in a list that are reported: one skill must not fill the report for all others."""


def check_list(skills: Any, revision: str) -> list[Violation]:
    """Return the violations of the entries in one page of `skills/list`."""
    faults = (
        fault
        for number, skill in enumerate(skills if isinstance(skills, list) else ())
        for fault in islice(check(skill, f"/result/skills/{number}", revision), _MOST_OF_ONE)
    )
    found = list(islice(faults, MOST_QUARANTINED))
    # Not in an entry: a list with so many faults is forwarded or refused as a whole.
    return found + [replace(another, at="/result/skills") for another in islice(faults, 1)]


def check(skill: Any, at: str, revision: str) -> Iterator[Violation]:
    """Yield the violations of the entry of one skill; *at* is the pointer to it."""
    if not isinstance(skill, dict):
        return
    uri, frontmatter, files = skill.get("uri"), skill.get("frontmatter"), skill.get("resources")
    if isinstance(frontmatter, dict):
        yield from _check_name(frontmatter.get("name"), at, revision)
        yield from _check_uri(uri, frontmatter.get("name"), at, revision)
        yield from _check_metadata(frontmatter.get("metadata"), at, revision)
    if isinstance(files, list):
        yield from _check_files(files, uri if isinstance(uri, str) else "", f"{at}/resources", revision)


def root_of(uri: Any) -> str | None:
    """Return the directory of the skill with this *uri*; None if it is not the URI of a skill."""
    return uri.removesuffix(_FILE) if isinstance(uri, str) and uri.endswith(_FILE) else None


def digest_of(text: Any) -> bytes:
    """Return the bytes of a digest; b"" for an invalid one."""
    valid = isinstance(text, str) and _DIGEST.fullmatch(text) is not None
    return bytes.fromhex(text.removeprefix("sha256:")) if valid else b""


def _check_name(name: Any, at: str, revision: str) -> Iterator[Violation]:
    if isinstance(name, str) and not _is_name(name):
        expected = f"1 to {_LONGEST_NAME} lower-case letters, digits and hyphens, without a hyphen at either end"
        at = f"{at}/frontmatter/name"
        yield violation("skills/name", at, expected=expected, found=shown(name), revision=revision)


def _is_name(name: str) -> bool:
    # Which letters are meant is not settled for other scripts than Latin: those in lower case pass.
    return _NAME.fullmatch(name) is not None or (
        0 < len(name) <= _LONGEST_NAME
        and name[0] != "-" != name[-1]
        and all(each == "-" or (each.isalnum() and each == each.lower()) for each in name)
    )


def _check_uri(uri: Any, name: Any, at: str, revision: str) -> Iterator[Violation]:
    if not isinstance(uri, str) or not isinstance(name, str):
        return
    root = root_of(uri)
    if root is None or not _names(root.rpartition("/")[2], name):
        expected = f'a URI that ends in "/{name[:_LONGEST_NAME]}{_FILE}"'
        yield violation("skills/uri", f"{at}/uri", expected=expected, found=shown(uri), revision=revision)


def _names(segment: str, name: str) -> bool:
    """Return whether the last segment of a directory is the name of a skill, also with escaped characters."""
    if segment == name or "%" not in segment:
        return segment == name

    return unquote(segment) == name


def _check_metadata(metadata: Any, at: str, revision: str) -> Iterator[Violation]:
    for key in metadata if isinstance(metadata, dict) else ():
        if key.startswith(_RESERVED):
            yield violation(
                "skills/metadata",
                f"{at}/frontmatter/metadata/{escaped(key)}",
                expected=f"a key that does not begin with {_RESERVED}",
                found=shown(key),
                revision=revision,
            )


def _check_files(files: list[Any], uri: str, at: str, revision: str) -> Iterator[Violation]:
    root = root_of(uri)
    seen: set[str] = set()
    total = 0
    for number, file in enumerate(files):
        if isinstance(file, dict):
            here = f"{at}/{number}"
            yield from _check_file(file, here, revision)
            yield from _check_place(file.get("uri"), root, seen, f"{here}/uri", revision)
            size = file.get("size")
            total += size if isinstance(size, int) and size > 0 else 0
    if uri and uri not in seen:
        yield _wrong_manifest(at, f"{shown(uri)} among the files", "no such file", revision)
    if len(files) > _MOST_FILES:
        yield _too_large(at, f"at most {_MOST_FILES} files", f"{len(files):,} files", revision)
    if total > _MOST_BYTES:
        yield _too_large(at, f"at most {_MOST_BYTES:,} bytes", f"{f'{total:,}'[:60]} bytes", revision)


def _check_file(file: Mapping[str, Any], at: str, revision: str) -> Iterator[Violation]:
    digest, size = file.get("digest"), file.get("size")
    if isinstance(digest, str) and not digest_of(digest):
        expected = '"sha256:" and 64 lower-case hexadecimal digits'
        yield violation("skills/digest", f"{at}/digest", expected=expected, found=shown(digest), revision=revision)
    if isinstance(size, int | float) and size < 0:
        yield violation("skills/digest", f"{at}/size", expected="at least 0", found=shown(size), revision=revision)


def _check_place(uri: Any, root: str | None, seen: set[str], at: str, revision: str) -> Iterator[Violation]:
    """Yield the violation of a file that is listed twice, or that is not in the directory *root*."""
    if not isinstance(uri, str):
        return
    if uri in seen:
        yield _wrong_manifest(at, "each file once", f"{shown(uri)} again", revision)
    elif root is not None and (not uri.startswith(f"{root}/") or ".." in uri[len(root) :].split("/")):
        yield _wrong_manifest(at, f'a URI below "{root[:200]}/"', shown(uri), revision)
    seen.add(uri)


def _wrong_manifest(at: str, expected: str, found: str, revision: str) -> Violation:
    return violation("skills/manifest", at, expected=expected, found=found, revision=revision)


def _too_large(at: str, expected: str, found: str, revision: str) -> Violation:
    return violation("skills/size", at, expected=expected, found=found, revision=revision)
