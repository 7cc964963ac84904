"""Cancellation of requests."""

from typing import TYPE_CHECKING

from assay.judge.party_state import PartyState
from assay.judge.render import shown_id
from assay.judge.topics.subscriptions import LISTEN
from assay.judge.topics.table import Note, on
from assay.judge.topics.tasks import Tasks
from assay.model.json_values import ident
from assay.model.verdict import Exchange, Party
from assay.rules.report import Report

if TYPE_CHECKING:
    from assay.judge.state import State


@on("note", "notifications/cancelled")
def check_cancellation(state: "State", note: Note, report: Report) -> None:
    """
    Report the cancellation of a request that its sender may not cancel, or that is not open.

    A server without requests of its own may cancel those of the client; but only subscriptions may end that way,
    because any other request would never be answered.
    """
    number = ident(note.params.get("requestId"))
    if number is None:
        return
    asker = _asker(state, note)
    exchange = asker.open.get(number)
    rule, at, found, hint = "protocol/cancel", "/params/requestId", shown_id(number), None
    if asker is not note.sender and exchange is not None and exchange.method != LISTEN:
        rule, expected, found = "protocol/cancel-other", "the id of a subscription", f"the id of {exchange.method}"
    elif exchange is None and number not in asker.settled and not asker.may_have(number):
        expected = "the id of an open request from the sender"
    elif exchange is not None and exchange.method == "initialize":
        expected = "a request other than initialize"
        hint = "Wait for the answer to initialize, or close the connection."
    elif state.own(Tasks).has(exchange or asker.settled.get(number)):
        expected, found = "tasks/cancel for a request that runs as a task", "notifications/cancelled"
        hint = "Send tasks/cancel with the taskId; its result is the final state of the task."
    else:
        return
    report.add(rule, at, expected=expected, found=found, hint=hint)


@on("noted", "notifications/cancelled")
def note_cancellation(state: "State", note: Note) -> Exchange | None:
    """Close a cancelled request, and return it."""
    number = ident(note.params.get("requestId"))
    if number is None:
        return None
    asker = _asker(state, note)
    exchange = asker.open.get(number)
    if exchange is None:
        return asker.settled.get(number)
    # A request that the server may not cancel stays open: its answer is still due.
    if asker is note.sender or exchange.method == LISTEN:
        asker.close(exchange, "cancelled")
    return exchange


def _asker(state: "State", note: Note) -> PartyState:
    """Return the party whose requests the sender of a cancellation may cancel."""
    is_own = note.sender.party is Party.CLIENT or note.rules.features.handshake
    return note.sender if is_own else state.parties[Party.CLIENT]
