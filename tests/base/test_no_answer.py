"""The message of the error in place of an answer: it names the cause, since clients show nothing else of it."""

from assay.base import no_answer
from assay.base.no_answer import reason_in, within
from assay.base.verdict import Party
from kit.rows import rows


@rows(
    ("code", "why", "message"),
    [
        ("UPSTREAM_FAILURE", "", "No answer came"),
        ("UPSTREAM_FAILURE", "it exited with status 1", "No answer came: the server exited with status 1"),
        ("UPSTREAM_FAILURE", "its session is gone", "No answer came: the server's session is gone"),
        ("UPSTREAM_FAILURE", "cannot start no: No such file", "No answer came: cannot start no: No such file"),
        ("UPSTREAM_FAILURE", "it answered 500 Oh", "No usable answer came: the server answered 500 Oh"),
        ("TIMEOUT", "", "No answer came in time"),
        ("TIMEOUT", within(600.0), "No answer came within 600 s"),
        ("TIMEOUT", within(0.5), "No answer came within 0.5 s"),
        ("INTERNAL_ERROR", "the guard failed (KeyError)", "Internal error"),
    ],
)
def test_message_names_the_cause(code: str, why: str, message: str) -> None:
    assert no_answer.error(code, why)["message"] == message


def test_message_names_the_party_that_owes_the_answer() -> None:
    made = no_answer.error("UPSTREAM_FAILURE", "it closed its input", owed_by=Party.CLIENT)
    assert made["message"] == "No answer came: the client closed its input"


def test_message_is_short_and_on_one_line() -> None:
    message = str(no_answer.error("UPSTREAM_FAILURE", "it exited with status 1", ["a\tb" + "x" * 1000])["message"])
    assert message.startswith("No answer came: the server exited with status 1: a bxx")
    assert len(message) < 400
    assert message.endswith("…")
    assert message.isprintable()


PYTHON = ["Traceback (most recent call last):", '  File "a.py", line 1', "    gone()", "RuntimeError: database is gone"]
NODE = ["throw new Error('gone')", "^", "", "Error: database is gone", "    at a.js:1:7", "", "Node.js v20.1.0"]
RUST = ["thread 'main' panicked at src/main.rs:2:5: database is gone", "note: run with `RUST_BACKTRACE=1`"]


@rows(
    ("lines", "reason"),
    [
        ([], ""),
        (PYTHON, "RuntimeError: database is gone"),
        (NODE, "Error: database is gone"),
        (RUST, "thread 'main' panicked at src/main.rs:2:5: database is gone"),
        (["   indented", ""], "indented"),
    ],
)
def test_reason_is_the_last_line_outside_of_a_stack(lines: list[str], reason: str) -> None:
    assert reason_in(lines) == reason
