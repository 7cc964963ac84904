"""`assay keys`, as people use it."""

import tomllib
from pathlib import Path

from assay.base.limits import TIERS
from assay.cli.main import parser
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


def test_several_keys_go_into_one_file(tmp_path: Path) -> None:
    done = [assay("keys", "new", name) for name in ("ci", "laptop")]
    made = [each.stdout for each in done]
    (tmp_path / "assay.toml").write_bytes(b"".join(each.stderr for each in done))
    assert len(set(made)) == 2
    found = tomllib.loads((tmp_path / "assay.toml").read_text())["auth"]["keys"]
    assert list(found) == ["ci", "laptop"]
    assert all(set(each) == {"hash"} for each in found.values())


def test_the_hash_of_a_key_is_what_new_printed() -> None:
    done = assay("keys", "new", "ci")
    hashed = assay("keys", "hash", said=done.stdout)
    assert hashed.stdout.decode().rstrip() == written_hash(done.stdout.rstrip())
    assert hashed.stdout.rstrip() in done.stderr
    assert hashed.stderr == b""


@rows(
    ("key", "reason"),
    [
        (b"", b"a key can have only letters, digits and"),
        (b"correct horse battery staple, and so on", b"a key can have only letters, digits and"),
        (b"hunter2", b"a key has at least 32 characters: the hash of a shorter one can be guessed"),
        (b"\xff" * 40, b"a key can have only letters, digits and"),
    ],
)
def test_what_can_be_guessed_has_no_hash(key: bytes, reason: bytes) -> None:
    done = assay("keys", "hash", said=key + b"\n")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"assay keys hash: " + reason)
    assert key not in done.stderr or not key


@rows(
    ("arguments", "reason"),
    [
        (("new", ""), b"argument NAME: expected 1 to 64 printable characters"),
        (("new", "a\nb"), b"argument NAME: expected 1 to 64 printable characters"),
        (("new", "ci", "--expires", "soon"), b"argument --expires: expected a date such as 2027-01-01"),
        (("new", "ci", "--expires", "2020-01-01"), b"argument --expires: 2020-01-01 is not after today, "),
        (("new", "ci", "--tier", "gold"), b"argument --tier: invalid choice"),
    ],
)
def test_a_slip_makes_no_key(arguments: tuple[str, ...], reason: bytes) -> None:
    done = assay("keys", *arguments)
    assert done.returncode == 2
    assert done.stdout == b""
    assert reason in done.stderr


def test_the_tiers_are_those_there_are() -> None:
    assert [parser("keys").parse_args(["keys", "new", "ci", "--tier", tier]).tier for tier in TIERS] == list(TIERS)
