"""A process of ours with a function in it that fails, and what its log must say of that."""

from pathlib import Path

import pytest

HOOK = Path(__file__).with_name("faults")

INTERNAL_ERROR = -32603

ASKED = "assay.edges.recorder:Recorder.moment"
EXCHANGED = "assay.edges.recorder:Recorder.exchange"
SETTLED = "assay.assets.asset_server:AssetServer.settle"
ANSWERED = "assay.assets.asset_server:AssetServer.answer"
HEARD = "assay.assets.asset_server:AssetServer.hear"
JUDGED = "assay.judge.conversation:Conversation.hear"


def fault_at(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """From now on processes that are started fail at *place* for messages with the word `fault` in them."""
    monkeypatch.setenv("PYTHONPATH", str(HOOK))
    monkeypatch.setenv("FAULT_AT", place)


def assert_logged_once(log: str) -> None:
    """The error is there with its traceback, once, although it happened more often."""
    assert log.count("ZeroDivisionError: a secret of ours") == 1, log
    assert log.count("Traceback (most recent call last)") == 1, log
