"""A finding begins with a sentence that a person would say."""

from hypothesis import given
from hypothesis import strategies as st

from assay.model.verdict import Violation
from assay.rules import RULES, violation
from assay.rules.sentences import details, located, sentence
from kit.laws import law
from kit.rows import rows

TEXTS = st.text(max_size=40) | st.sampled_from(
    ["nothing", "the property `a`", "no property but `a`", "the text *", "{found}", "at most 3 items", "*", "{", "the "]
)


@rows(
    ("rule", "at", "expected", "found", "said"),
    [
        ("contract/input", "/params/arguments", "the property `url`", "an empty object", "Missing argument `url`"),
        ("protocol/result", "/result/tools/0", "the property `name`", "an object with `a`", "Missing property `name`"),
        ("protocol/result", "/result/tools/0", "an object", "5", "`tools[0]` must be an object, not 5"),
        ("contract/input", "/params/arguments/a~1b", "a string", "5", "`a/b` must be a string, not 5"),
        ("protocol/params", "/params/name", "a string", "the string \"x\"", '`name` must be a string, not "x"'),
        (
            "contract/input", "/params/arguments/n", "at most 3 characters", "a string of 5 characters",
            "`n` must have at most 3 characters, not 5 characters",
        ),
        (
            "contract/input", "/params/arguments/warehouse", "no property but `sku`", "the property `warehouse`",
            "Unexpected argument `warehouse`; only `sku` is allowed",
        ),
        ("protocol/cache-hints", "/result", "ttlMs", "nothing", "Missing ttlMs"),
        ("envelope/message", "", "an object", "42", "The message must be an object, not 42"),
        ("syntax/json", "", "one JSON value", 'the text "hello?"', 'Not JSON: "hello?"'),
        ("syntax/json", "", "one JSON value", "trailing comma", "Not JSON: trailing comma"),
        ("contract/duplicate-tool", "/result", "a unique name", '"dup" again', 'Duplicate tool name "dup"'),
        (
            "protocol/unanswered", "", "an answer to tools/call", "none: the server exited with status 1",
            "No response to tools/call: the server exited with status 1",
        ),
        (
            "protocol/before-initialize", "/method", "no message before the client's initialize", "roots/list",
            "The server sent roots/list before initialize",
        ),
        ("a/rule-of-another-version", "/a", "sense", "none of it", "Expected sense, found none of it"),
    ],
)  # fmt: skip
def test_a_violation_is_a_sentence(rule: str, at: str, expected: str, found: str, said: str) -> None:
    assert sentence(Violation(rule, at, expected, found, "", "")) == said


def test_the_place_follows_and_what_the_sentence_leaves_out() -> None:
    whole = violation("contract/input", "/params/arguments/n", expected="a string", found="5")
    assert located(whole) == "`n` must be a string, not 5, at /params/arguments/n"
    assert details(whole) == "at /params/arguments/n"
    part = violation("contract/input", "/params/arguments", expected="the property `n`", found="an object with `m`")
    assert details(part) == "at /params/arguments: expected the property `n`, found an object with `m`"


@law(200)
@given(rule=st.sampled_from([*RULES, "unknown/rule"]), at=st.text(max_size=9), expected=TEXTS, found=TEXTS)
def test_every_finding_has_a_sentence(rule: str, at: str, expected: str, found: str) -> None:
    """Texts quote messages, and a journal of another version has texts that no template knows."""
    said = Violation(rule, at, expected, found, "", "")
    assert sentence(said)
    assert sentence(said) in located(said)
    assert details(said)
