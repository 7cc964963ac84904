"""`assay keys`, as people use it."""

import tomllib
from pathlib import Path

from assay.edges.auth import Gate, Principal
from assay.edges.auth.api_keys import written_hash
from assay.settings import load
from kit.command import assay
from kit.issuers import bearer
from kit.rows import rows


@rows("name", ["ci", "Jane Doe", 'a "b" \\ c', "größe", "a.b"])
def test_what_is_printed_lets_the_key_in(tmp_path: Path, name: str) -> None:
    done = assay("keys", "new", name, "--tier", "pro", "--expires", "2999-12-31")
    assert done.returncode == 0
    (tmp_path / "assay.toml").write_bytes(b"[limits]\ndepth = 9\n" + done.stderr)
    key = done.stdout.rstrip(b"\n")
    gate = Gate.read(load({}, tmp_path).auth, cwd=tmp_path, tier="community")
    assert gate is not None
    assert gate.known(bearer(key)) == Principal(name, "pro")
    assert key not in done.stderr


def test_the_hash_of_a_key_is_what_new_printed_and_several_go_into_one_file() -> None:
    done = [assay("keys", "new", name) for name in ("ci", "laptop")]
    found = tomllib.loads(b"".join(each.stderr for each in done).decode())["auth"]["keys"]
    assert list(found) == ["ci", "laptop"]
    for each, entry in zip(done, found.values(), strict=True):
        hashed = assay("keys", "hash", said=each.stdout)
        assert (hashed.stdout.decode().rstrip(), hashed.stderr) == (written_hash(each.stdout.rstrip()), b"")
        assert entry == {"hash": hashed.stdout.decode().rstrip()}
    assert done[0].stdout != done[1].stdout


@rows(
    "arguments, key, reason",
    [
        (("hash",), b"", b"a key can have only letters, digits and"),
        (("hash",), b"correct horse battery staple, and so on", b"a key can have only letters, digits and"),
        (("hash",), b"hunter2", b"a key has at least 32 characters: the hash of a shorter one can be guessed"),
        (("hash",), b"\xff" * 40, b"a key can have only letters, digits and"),
        (("new", ""), b"", b"argument NAME: expected 1 to 64 printable characters"),
        (("new", "a\nb"), b"", b"argument NAME: expected 1 to 64 printable characters"),
        (("new", "ci", "--expires", "soon"), b"", b"argument --expires: expected a date such as 2027-01-01"),
        (("new", "ci", "--expires", "2020-01-01"), b"", b"argument --expires: 2020-01-01 is not after today, "),
    ],
)
def test_a_slip_or_a_key_that_can_be_guessed_makes_nothing(
    arguments: tuple[str, ...], key: bytes, reason: bytes
) -> None:
    done = assay("keys", *arguments, said=key + b"\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert reason in done.stderr
    assert key not in done.stderr or not key
