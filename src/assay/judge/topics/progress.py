"""Progress: the tokens of open requests, and notifications about them."""

from typing import TYPE_CHECKING, Any, Final

from assay.judge.party_state import PartyState
from assay.judge.render import shown_id
from assay.judge.topics.paging import check_length
from assay.judge.topics.subscriptions import is_on_subscription
from assay.judge.topics.table import Note, on
from assay.model.json_values import SUBSCRIPTION_KEY, Id, ident, obj
from assay.model.verdict import Exchange
from assay.rules.report import Report
from assay.schema.pointers import escaped

if TYPE_CHECKING:
    from assay.judge.state import State

_AT: Final = "/params/_meta/progressToken"


@on("request")
def take_token(state: "State", exchange: Exchange, params: dict[str, Any], report: Report) -> None:
    """Keep the progress token of a request."""
    token = ident(obj(params.get("_meta")).get("progressToken"))
    if token is None or (isinstance(token, str) and not check_length(_AT, token, state.limits.id_bytes, report)):
        return
    sender = state.parties[exchange.asker]
    if token in sender.tokens:
        _check_unshared(sender, token, report)
    exchange.token = token
    sender.tokens[token] = None


def _check_unshared(sender: PartyState, token: Id, report: Report) -> None:
    """Report a request whose progress token belongs to another open request of *sender*."""
    other = next((each for each in sender.open.values() if each.token == token), None)
    if other is None:
        return
    # From now on a progress notification could be about either request.
    sender.shared[token] = None
    found = f"{shown_id(token)}, the token of the open request {shown_id(other.id)} ({other.method})"
    report.add("protocol/progress-token", _AT, expected="an unused token", found=found)


@on("note", "notifications/progress")
def check_progress(state: "State", note: Note, report: Report) -> None:
    """Report progress without an open request, or that does not increase."""
    asker = state.parties[note.sender.party.other]
    if is_on_subscription(note.params) and not note.rules.features.handshake:
        report.add(
            "protocol/progress",
            f"/params/_meta/{escaped(SUBSCRIPTION_KEY)}",
            expected="progress on the response to its request",
            found="progress on a subscription",
            hint="Send notifications/tasks on a subscription; progress belongs to an open request.",
        )
        return
    token, progress = ident(note.params.get("progressToken")), note.params.get("progress")
    if token is None or token in asker.shared or not isinstance(progress, int | float):
        return
    last = asker.tokens.get(token)
    if token not in asker.tokens:
        # The id may be that of an unreadable request, or the two messages crossed on the way.
        if not asker.unknown and not asker.broke_off(token):
            at, expected = "/params/progressToken", "the token of an open request"
            report.add("protocol/progress", at, expected=expected, found=shown_id(token))
    elif last is not None and progress <= last:
        report.add(
            "protocol/progress",
            "/params/progress",
            expected=f"more than {last:g}",
            found=f"{progress:g}",
            hint="Increase progress with each notification, even if the total is unknown.",
        )


@on("noted", "notifications/progress")
def note_progress(state: "State", note: Note) -> None:
    """Keep the last progress of a request."""
    tokens = state.parties[note.sender.party.other].tokens
    token, progress = ident(note.params.get("progressToken")), note.params.get("progress")
    if token in tokens and isinstance(progress, int | float):
        tokens[token] = progress
