"""Options of `assay guard` that cannot be used: said on stderr, status 2, and nothing is started."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kit.command import assay_text
from kit.rows import rows

TOKEN = "tok-4711-secret"  # noqa: S105 - the test is that it is not shown
URL = ("--target", "https://books.invalid/mcp")


Refused = Callable[..., str]


@pytest.fixture
def refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Refused:
    """What is said of options, on a stream or its descriptor."""

    def said(*options: str, **variables: str) -> str:
        done = assay_text("guard", *options, cwd=tmp_path, **variables)
        out, err = capfd.readouterr()
        assert (done.returncode, done.stdout + out) == (2, "")
        found = done.stderr + err
        assert "Traceback" not in found
        assert TOKEN not in found
        return found

    return said


COMMAND = ("--", "touch", "started")
PROXY = "that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names cannot be used"


@rows(
    ("options", "reason"),
    [
        (("--timeout", "-1", *COMMAND), "expected 0 or more seconds"),
        (("--timeout", "inf", *COMMAND), "expected 0 or more seconds"),
        (("--timeout", "nan", *COMMAND), "expected 0 or more seconds"),
        (("--timeout", "soon", *COMMAND), "soon: expected 0 or more seconds"),
        (("--mode", "loud", *COMMAND), "invalid choice"),
        (("--set", "guard.mode=enforc", *COMMAND), 'found the string "enforc"; did you mean enforce?'),
        (("--set", "guard.timeout=-1", *COMMAND), "timeout must be at least 0"),
        (("--set", "guard.frame_bytes=0", *COMMAND), "frame_bytes, children and children_each at least 1"),
        (
            ("--record", "notes.txt", *COMMAND),
            "--record notes.txt: exists and is not a recording of a guard; remove it",
        ),
        (("--record", "nowhere/session.jsonl", *COMMAND), "--record nowhere/session.jsonl: No such file or directory"),
        (("--record", "-", *COMMAND), "--record -: standard output belongs to the protocol; give a file"),
        (("--",), "assay guard: give a COMMAND, --target URL or --config FILE.json\n"),
        (("--target", "http://a", *COMMAND), "assay guard: give only one of a COMMAND and --target URL\n"),
        (("--target", "nowhere"), "it begins with neither http:// nor https://"),
        (("--target", "http://"), "it names no host"),
        (("--target", "http://[::1"), "it is no URL"),
        (("--target", f"http://me:{TOKEN}@books.example:x/mcp?key={TOKEN}"), "it is no URL"),
        (
            ("--target", f"http://me:{TOKEN}@books.example/mcp", "--header", "Authorization: Bearer y"),
            "it has a user name, and --header has Authorization: give one of them: http://books.example/mcp",
        ),
        (("--target", "http://a", "--header", "x"), "--header: expected 'Name: value'"),
        (("--target", "http://a", "--header", "X: env:NO_SUCH"), "NO_SUCH is not set"),
    ],
)
def test_an_option_that_cannot_be_used_is_status_2_and_nothing_is_started(
    tmp_path: Path, refused: Refused, options: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "notes.txt").write_text("notes\n")
    assert reason in refused(*options)
    assert not (tmp_path / "started").exists()


@rows(
    ("variables", "reason"),
    [
        ({"ALL_PROXY": f"socks9://me:{TOKEN}@a"}, PROXY),
        ({"ALL_PROXY": f"http://me:{TOKEN}@a:b"}, PROXY),
        ({"ASSAY_UPSTREAM_CA": "missing.pem"}, "the certificates of upstream.ca cannot be read"),
        ({"ASSAY_UPSTREAM_CERTIFICATE": "missing.pem"}, "upstream.certificate and upstream.key cannot be used"),
        ({"ASSAY_UPSTREAM_KEY": "missing.pem"}, "key needs certificate"),
    ],
)
def test_what_a_server_cannot_be_reached_with_is_status_2(
    refused: Refused, variables: dict[str, str], reason: str
) -> None:
    direct = {"ASSAY_UPSTREAM_PROXIES": "true", "NO_PROXY": "", "no_proxy": ""}
    assert reason in refused(*URL, **direct, **variables)
