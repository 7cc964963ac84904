"""`assay validate`: one line of JSON a file, and an exit status that a script can go by (specs/001 §10)."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kit.command import assay, variables_but
from kit.places import ROOT
from kit.rows import rows

SCHEMAS = ROOT / "examples" / "catalogue" / "jsonschema"
EXAMPLES = ROOT / "examples" / "catalogue" / "examples"
TONE = json.loads((EXAMPLES / "tone.hum.json").read_bytes())
GOOD = {"ok": True, "errors": []}


def validate(
    directory: Path, *arguments: str, stdin: bytes = b"", **environ: str
) -> subprocess.CompletedProcess[bytes]:
    env = {**variables_but("ASSAY_", "SYN_"), "SYN_SCHEMAS_DIR": str(SCHEMAS), **environ}
    return assay("validate", *arguments, said=stdin, cwd=directory, env=env)


def results(done: subprocess.CompletedProcess[bytes]) -> list[Any]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def written(directory: Path, name: str, content: Any) -> str:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content, indent=2).encode())
    return name


# ── one file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_good_asset_is_ok_and_nothing_else_is_said(tmp_path: Path) -> None:
    done = validate(tmp_path, str(EXAMPLES / "tone.hum.json"))
    assert done.stdout == b'{"ok":true,"errors":[]}\n'
    assert done.stderr == b""
    assert done.returncode == 0


def test_a_bad_asset_is_shown_place_by_place(tmp_path: Path) -> None:
    bad = {**TONE, "frequency": "110 Hz", "waveform": 3}
    done = validate(tmp_path, written(tmp_path, "tone.json", bad))
    [result] = results(done)
    assert {"ok": False, "reason": "validation_failed"}.items() <= result.items()
    assert [error["path"] for error in result["errors"]] == ["/frequency", "/waveform"]
    assert set(result) == {"ok", "reason", "errors"}
    assert done.returncode == 1


@rows(
    ("content", "path", "words"),
    [
        pytest.param(b'{"a":1,\n "b":}', "", "(line 2, column 6)", id="no-json"),
        pytest.param(b"", "", "one JSON value", id="empty"),
        pytest.param(b'{"a":{"b":1,"b":2}}', "/a/b", "each key once", id="repeated-key"),
        pytest.param(b'{"a":\nNaN}', "", "a finite number, found NaN or Infinity at character 6 (line 2", id="nan"),
        pytest.param(b"[" * 200 + b"]" * 200, "", "at most 128 levels", id="deep"),
        pytest.param(b"[" * 100_000, "", "at most 128 levels", id="very-deep"),
        pytest.param(b'{"a":"\xff"}', "", "UTF-8", id="no-utf8"),
        pytest.param(b"\xef\xbb\xbf{}", "", "a byte order mark", id="byte-order-mark"),
    ],
)
def test_what_is_no_json_is_shown_with_its_place(tmp_path: Path, content: bytes, path: str, words: str) -> None:
    done = validate(tmp_path, written(tmp_path, "tone.json", content))
    [result] = results(done)
    assert {"ok": False, "reason": "parse_error"}.items() <= result.items()
    [error] = result["errors"]
    assert error["path"] == path
    assert words in error["msg"]
    assert done.stderr.startswith(b"assay validate: tone.json: ")
    assert done.stderr.count(b"\n") == 1
    assert done.returncode == 2


@rows(("extra", "status"), [(0, 0), (1, 1)])
def test_a_file_has_at_most_what_a_request_has(tmp_path: Path, extra: int, status: int) -> None:
    """specs/001 §3 and §6: 1 MiB, refused before it is parsed."""
    content = json.dumps(TONE).encode().ljust((1 << 20) + extra)
    done = validate(tmp_path, written(tmp_path, "tone.json", content))
    too_large = {"ok": False, "reason": "validation_failed", "errors": [{"path": "", "msg": "payload_too_large"}]}
    assert results(done) == [too_large if extra else GOOD]
    assert done.returncode == status
    endless = validate(tmp_path, "/dev/zero")
    assert (results(endless), endless.stderr) == (
        [too_large],
        b"assay validate: /dev/zero: longer than 1,048,576 bytes\n",
    )


def test_the_limits_are_those_of_the_settings(tmp_path: Path) -> None:
    name = written(tmp_path, "tone.json", TONE)
    assert b"payload_too_large" in validate(tmp_path, name, "--set", "limits.frame_bytes=50").stdout
    written(tmp_path, "assay.toml", b"[limits]\nframe_bytes = 50\n")
    assert b"payload_too_large" in validate(tmp_path, name).stdout
    assert validate(tmp_path, name, "--config", os.devnull).returncode == 0
    slip = validate(tmp_path, name, ASSAY_LIMITS_DEPHT="1")
    assert slip.returncode == 2
    assert slip.stdout == b""
    assert slip.stderr.startswith(b"assay: ASSAY_LIMITS_DEPHT: unknown setting; did you mean ASSAY_LIMITS_DEPTH")


# ── which schema ─────────────────────────────────────────────────────────────────────────────────────────────────────


@rows(
    ("name", "reference", "arguments", "schema"),
    [
        ("tone.json", "jsonschema/haptic.schema.json", (), "haptic"),
        ("tone.small.json", None, (), "tone"),
        ("Rule-Bundle_Example.json", None, (), "rule-bundle"),
        ("anything.json", None, (), "synesthetic-asset"),
        ("tone.json", "jsonschema/haptic.schema.json", ("--schema", "shader"), "shader"),
        ("anything.json", "none.schema.json", (), "none"),
    ],
)
def test_the_schema_is_said_or_named_by_the_asset_or_by_its_file(
    tmp_path: Path, name: str, reference: str | None, arguments: tuple[str, ...], schema: str
) -> None:
    """The same choice as `get_example`; an empty asset lacks what the chosen schema requires."""
    asset = {"$schemaRef": reference} if reference else {}
    found = results(validate(tmp_path, *arguments, written(tmp_path, name, asset)))
    expected = results(validate(tmp_path, "--schema", schema, written(tmp_path, "x.json", asset)))
    assert found == expected
    assert found[0]["ok"] is False


def test_an_unknown_schema_gets_a_suggestion(tmp_path: Path) -> None:
    done = validate(tmp_path, "--schema", "tnoe", written(tmp_path, "x.json", TONE))
    assert results(done)[0]["errors"] == [{"path": "", "msg": "unknown schema `tnoe`: did you mean `tone`?"}]
    assert done.returncode == 1


def test_schemas_come_from_the_option_then_the_variable_then_the_submodule(tmp_path: Path) -> None:
    """specs/001 §2; the option is ours."""
    name = written(tmp_path, "tone.json", TONE)
    nothing = validate(tmp_path, name, SYN_SCHEMAS_DIR="")
    assert "there are no schemas here" in results(nothing)[0]["errors"][0]["msg"]
    assert b"--schemas" in nothing.stderr
    assert nothing.returncode == 1
    usual = tmp_path / "libs" / "synesthetic-schemas"
    usual.mkdir(parents=True)
    (usual / "jsonschema").symlink_to(SCHEMAS)
    assert results(validate(tmp_path, name, SYN_SCHEMAS_DIR="")) == [GOOD]
    assert validate(tmp_path, name, SYN_SCHEMAS_DIR=str(usual)).returncode == 1
    assert results(validate(tmp_path, name, "--schemas", str(SCHEMAS), SYN_SCHEMAS_DIR=str(usual))) == [GOOD]
    wrong = validate(tmp_path, name, "--schemas", "nowhere")
    assert wrong.returncode == 2
    assert b"argument --schemas: nowhere: no such directory" in wrong.stderr


# ── several files, directories, standard input ───────────────────────────────────────────────────────────────────────


def test_several_files_have_a_line_each_and_the_worst_status_counts(tmp_path: Path) -> None:
    good, bad = written(tmp_path, "tone.good.json", TONE), written(tmp_path, "tone.bad.json", {})
    done = validate(tmp_path, good, "none.json", bad)
    assert [(row["file"], row["ok"], row.get("reason")) for row in results(done)] == [
        (good, True, None),
        ("none.json", False, "io_error"),
        (bad, False, "validation_failed"),
    ]
    assert results(done)[1]["errors"] == [{"path": "", "msg": "No such file or directory"}]
    assert done.stderr == b"assay validate: none.json: No such file or directory\n"
    assert done.returncode == 2
    assert validate(tmp_path, good, bad).returncode == 1
    assert validate(tmp_path, good, good).returncode == 0


def test_a_directory_stands_for_the_files_below_it_in_order(tmp_path: Path) -> None:
    """Directories named _… or .… are left out, as in listings."""
    for name in ("b/tone.2.json", "b/tone.1.json", "a/tone.json", "tone.json"):
        written(tmp_path / "assets", name, TONE)
    for name in ("_skip/tone.json", ".git/tone.json", ".hidden.json", "notes.txt"):
        written(tmp_path / "assets", name, b"no asset")
    os.mkfifo(tmp_path / "assets" / "pipe.json")
    done = validate(tmp_path, "assets")
    assert results(done) == [
        {"file": f"assets/{name}", **GOOD} for name in ("a/tone.json", "b/tone.1.json", "b/tone.2.json", "tone.json")
    ]
    assert done.returncode == 0


def test_what_should_be_in_a_directory_and_is_not_is_an_error(tmp_path: Path) -> None:
    """Ours: a build that looks into the wrong directory must not pass."""
    (tmp_path / "assets").mkdir()
    done = validate(tmp_path, "assets")
    assert results(done) == [
        {"file": "assets", "ok": False, "reason": "io_error", "errors": [{"path": "", "msg": "no .json file in it"}]}
    ]
    assert done.returncode == 2
    (tmp_path / "assets" / "tone.json").symlink_to("nowhere")
    assert results(validate(tmp_path, "assets"))[0]["errors"][0]["msg"] == "No such file or directory"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_cannot_be_entered_is_an_error(tmp_path: Path) -> None:
    written(tmp_path, "assets/tone.json", TONE)
    closed = tmp_path / "assets" / "closed"
    closed.mkdir(mode=0)
    done = validate(tmp_path, "assets")
    assert [(row["file"], row.get("reason")) for row in results(done)] == [
        ("assets/tone.json", None),
        ("assets/closed", "io_error"),
    ]
    assert done.returncode == 2


def test_a_dash_is_standard_input(tmp_path: Path) -> None:
    tone = {"$schemaRef": "tone.schema.json", **TONE}
    assert results(validate(tmp_path, "-", stdin=json.dumps(tone).encode())) == [GOOD]
    assert results(validate(tmp_path, "--schema", "tone", "-", stdin=json.dumps(TONE).encode())) == [GOOD]
    named = validate(tmp_path, "-", str(EXAMPLES / "tone.hum.json"), stdin=b"{")
    assert [(row["file"], row["ok"]) for row in results(named)] == [
        ("-", False),
        (str(EXAMPLES / "tone.hum.json"), True),
    ]


def test_a_name_that_no_terminal_should_see_is_shown_harmlessly(tmp_path: Path) -> None:
    done = validate(tmp_path, "\x1b[31m.json", os.fsdecode(b"\xff.json"))
    assert [row["file"] for row in results(done)] == ["\x1b[31m.json", "\ufffd.json"]
    assert b"\x1b" not in done.stdout
    assert b"\x1b" not in done.stderr
