"""
What is said about a definition of the facts that is wrong, and who may read them.

What each form means is shown by `test_official.py`: the definitions that are read are the official ones.
"""

import sys
from pathlib import Path
from threading import Barrier, Thread

import pytest

import assay.spec
from assay.spec.notation import NotationError, WireFacts
from kit.rows import rows

FACTS = Path(assay.spec.__file__).with_name("facts.txt")


@rows(
    ("text", "message"),
    [
        pytest.param("It {\n  a str\n}", 'expected ":", found "str"', id="no-colon"),
        pytest.param("It {\n  a: str\n", "the definition ends too early", id="no-closing-brace"),
        pytest.param("It {\n  a: [str\n}", 'expected "]", found "}"', id="no-closing-bracket"),
        pytest.param("It", 'expected "{", found ""', id="nothing"),
        pytest.param("It = {", "the definition ends too early", id="nothing-within"),
        pytest.param("It = str str", "the definition should end here", id="too-much"),
        pytest.param("# x\n\nIt = %", 'expected a type, found "%"', id="no-type"),
        pytest.param("It = -x", 'expected a type, found "-x"', id="no-number"),
        pytest.param("It = int 0..x", "0..x are no bounds", id="no-bounds"),
        pytest.param("It {\n  a: Missing\n}", "Missing is not defined", id="unknown-name"),
        pytest.param("It < Missing", "Missing is not defined", id="unknown-base"),
        pytest.param("It {\n  a: str\n  a?: int\n}", "a is given twice", id="field-twice"),
        pytest.param("It = str @2 | int @3", "no alternative is left", id="no-alternative"),
    ],
)
def test_an_error_names_the_definition(text: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        WireFacts(text).read("It", 1)
    assert str(caught.value) == f"It in revision 1: {message}"


@rows(
    ("text", "message"),
    [
        pytest.param("It = str\nIt @1 = int", "It is defined twice in revision 1", id="definition-twice"),
        pytest.param("It @x = str", "@x names no revisions", id="no-revisions"),
        pytest.param("It {\n  a: str @1-\n}", "@1- names no revisions", id="open-range"),
    ],
)
def test_an_error_in_the_revisions_of_a_definition_is_found(text: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        WireFacts(text).read("It", 1)
    assert str(caught.value) == message


def test_a_wrong_definition_does_not_disturb_the_others() -> None:
    """Definitions are read when asked for; the index only needs to know where they begin."""
    facts = WireFacts("Wrong { a\nRight = str")
    assert facts.read("Right", 1) == {"type": "string"}
    assert facts.definitions(1) == ["Right", "Wrong"]


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        WireFacts("It = str").read("Other", 1)


def test_threads_may_read_for_the_first_time_at_the_same_moment() -> None:
    """Ours: the first judgements of several threads failed, with definitions that seemed to contain themselves."""
    facts = WireFacts(FACTS.read_text(encoding="utf-8"))
    found: list[object] = []
    start = Barrier(8)

    def read() -> None:
        start.wait()
        try:
            found.append([facts.read(name, 5) for name in facts.definitions(5)])
        except NotationError as error:
            found.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=read) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert found == [[facts.read(name, 5) for name in facts.definitions(5)]] * 8
