"""A short run of what `make soak` runs for long, the same each time."""

import pytest
import soak as soaking
from mutations import seeds
from soak import soak

from kit.rows import rows


@rows("name", ["serve-http", "sc-enforce", "sh-audit", "hc-enforce", "hh-audit"])
def test_no_changed_message_ends_a_process_or_stays_without_an_answer(name: str) -> None:
    soak(name, 300 if name.startswith("sc") else 60, 1, seeds())


def test_a_soak_says_what_is_spoken_to_and_how_many_targets_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert soaking.run(["20", "sc-enforce"]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    spoken_to = "sc-enforce: assay guard --mode enforce, a client over STDIO, a server in a child process"
    assert (first, last) == (spoken_to, "no failures")
    # Nothing answers in no time.
    monkeypatch.setattr(soaking, "SECONDS", 0)
    assert soaking.run(["2", "serve-stdio", "sc-audit"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "2 of 2 targets failed"
