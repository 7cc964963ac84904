"""The file: what it says, what is wrong with one, and which server it is taken for."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from assay.lock.lock_file import FILE, LockError, read, write, written
from assay.lock.locked import KINDS, Locked
from kit.locking import ALL, FIND
from kit.rows import rows


def locked(*command: str, **members: Any) -> Locked:
    listed = {kind.member: {one[kind.key]: (one,) for one in ALL[kind.member]} for kind in KINDS}
    given = {"revision": "2025-11-25", "server": {"name": "library", "version": "1"}, "listed": listed, **members}
    return Locked(command=command, **given)


def test_a_file_is_sorted_and_one_thing_a_line(tmp_path: Path) -> None:
    write(tmp_path / FILE, {"b": locked("run", "b"), "a": locked("run", "a")})
    text = (tmp_path / FILE).read_text()
    assert text.endswith("}\n")
    document = json.loads(text)
    assert list(document) == ["format", "servers"]
    assert list(document["servers"]) == ["a", "b"]
    assert list(document["servers"]["a"]["tools"]) == ["find_books", "lend_book"]
    assert document["servers"]["a"]["tools"]["find_books"]["definition"] == FIND
    assert '\n          "description": "Finds books by words.",\n' in text.replace("  " * 6, "  " * 5)


def test_what_cannot_be_seen_is_spelt_out() -> None:
    """Instructions to a model can be written in characters that no screen shows."""
    hidden = "Finds books.\u200b\U000e0041\u202e\x1b[8m"
    content = written({"a": locked("run", listed={"tools": {"find_books": ({**FIND, "description": hidden},)}})})
    assert rb"Finds books.\u200b\udb40\udc41\u202e\u001b[8m" in content
    assert "é".encode() in written({"a": locked("run", instructions=("é",))})


def test_a_file_is_written_whole_and_keeps_its_rights(tmp_path: Path) -> None:
    real, link = tmp_path / "real.lock", tmp_path / FILE
    real.write_text("{}")
    real.chmod(0o640)
    link.symlink_to(real)
    write(link, {"a": locked("run")})
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == [FILE, "real.lock"]
    assert read(link) == {"a": locked("run")}


def test_a_file_of_an_earlier_version_with_tags_is_read(tmp_path: Path) -> None:
    document = json.loads(written({"a": locked("run")}))
    document["servers"]["a"] |= {"tags": {"tools/list": "t"}, "variantTags": {"tools/list": None}}
    (tmp_path / FILE).write_text(json.dumps(document))
    assert read(tmp_path / FILE) == {"a": locked("run")}


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    with pytest.raises(LockError, match=r"cannot write .*nowhere/assay\.lock: No such file"):
        write(tmp_path / "nowhere" / FILE, {})


def test_a_link_to_nothing_is_not_followed(tmp_path: Path) -> None:
    """A stranger's checkout could name any file of ours that is not there yet."""
    (tmp_path / FILE).symlink_to(tmp_path / "profile")
    with pytest.raises(LockError, match=r"it is a link to .*profile, which does not exist"):
        write(tmp_path / FILE, {})
    assert not (tmp_path / "profile").exists()


GOOD = json.loads(written({"a": locked("run")}))


def damaged(*path: str, value: Any) -> bytes:
    """A file in which something else stands at *path*."""
    document = json.loads(json.dumps(GOOD))
    here = document
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return json.dumps(document).encode()


DAMAGED = [
    ("empty", b"", "not a lock"),
    ("no-json", b"{", "not a lock: the file: expected one JSON value, .*syntax/json"),
    ("a-merge-conflict", b"<<<<<<< ours\n{}", "not a lock: .*syntax/json"),
    ("a-key-twice", b'{"format":1,"format":1,"servers":{}}', "not a lock: .*syntax/duplicate-key"),
    ("no-object", b"[]", "the file: expected an object"),
    ("no-format", b"{}", 'expected "format": 1'),
    ("format-is-true", damaged("format", value=True), 'expected "format": 1'),
    ("a-newer-format", damaged("format", value=2), "made by a newer Assay, in format 2; this one reads format 1"),
    ("no-servers", damaged("servers", value=[]), "/servers: expected an object"),
    ("no-server", damaged("servers", "a", value=1), "/servers/a: expected an object"),
    ("no-command", damaged("servers", "a", "command", value=[]), "either a command or a url"),
    ("both", damaged("servers", "a", "url", value="http://a.example"), "either a command or a url"),
    ("a-command-that-is-none", damaged("servers", "a", "command", value="run"), "an array of strings"),
    ("a-revision-that-is-none", damaged("servers", "a", "revision", value=1), "/servers/a/revision: expected a string"),
    ("no-tools", damaged("servers", "a", "tools", value=[]), "/servers/a/tools: expected an object"),
    ("no-definition", damaged("servers", "a", "tools", "find_books", value={}), "definition: expected an object"),
    ("another-description", damaged("servers", "a", "tools", "find_books", "definition", "description", value="x"),
     "/servers/a/tools/find_books: changed by hand: it does not fit its fingerprint"),
    ("another-fingerprint", damaged("servers", "a", "tools", "find_books", "fingerprint", value="sha256:00"),
     "it does not fit its fingerprint"),
    ("another-name", damaged("servers", "a", "tools", "x", value=GOOD["servers"]["a"]["tools"]["find_books"]), "/x: "),
]  # fmt: skip


@rows(("content", "reason"), [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_a_damaged_file_is_an_error_that_says_where(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(LockError, match=reason) as caught:
        read(tmp_path / FILE)
    assert str(caught.value).startswith(str(tmp_path / FILE))
    assert "\n" not in str(caught.value)
