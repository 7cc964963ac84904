"""What a page reads from a console: its state, rows, messages, findings, contracts, sessions and durations."""

from collections.abc import Callable, Iterable
from time import time
from typing import Any, Final

import orjson

from assay import __version__
from assay.console.api_values import ApiError, ApiReply, ApiRequest, json_reply, number_of
from assay.console.console_exports import MOST_EXPORTED
from assay.console.console_rows import COLUMNS, VERSION
from assay.console.console_state import ConsoleState, ServerFacts
from assay.console.message_view import NO_PAYLOAD, curl, message_answer
from assay.records.filtering import WORDS


class ConsoleAnswers:
    """The answers to requests that only read."""

    def __init__(self, state: ConsoleState, formats: Iterable[str], *, epoch: str) -> None:
        """*formats* are those of exports."""
        self.state, self._formats, self._epoch = state, list(formats), epoch

    def answer(self, request: ApiRequest) -> ApiReply:
        """Return the answer to a GET. Raises `ApiError`."""
        if request.path == "api/rows":
            return self._rows(request)
        first, _, rest = request.path.removeprefix("api/").partition("/")
        if first == "messages" and rest:
            return self._message(rest)
        handler = _GETS.get(first) if not rest else None
        if handler is None:
            raise ApiError(404, "unknown", "there is nothing here")
        return json_reply(handler(self, request))

    def _state(self, _: ApiRequest) -> Any:
        store = self.state.store
        return {
            "api": VERSION,
            "assay": __version__,
            "epoch": self._epoch,
            "now": time(),
            "tick": self.state.tick,
            "newest": store.newest,
            "oldest": store.oldest,
            "limits": {"rows": store.most_rows, "detailBytes": store.most_bytes, "exportRows": MOST_EXPORTED},
            "dropped": self.state.dropped,
            "loading": self.state.loading,
            "failed": self.state.failed,
            "servers": self.servers(),
            "formats": self._formats,
            "words": list(WORDS),
        }

    def servers(self) -> list[Any]:
        """Return all servers."""
        return list(self.state.servers(time()))

    def _rows(self, request: ApiRequest) -> ApiReply:
        store = self.state.store
        after, limit = number_of(request, "after", 0), number_of(request, "limit", store.most_rows)
        rows = store.after(after)
        rows = rows[max(0, len(rows) - limit) :]
        head = {"epoch": self._epoch, "oldest": store.oldest, "newest": store.newest, "columns": COLUMNS}
        return ApiReply(orjson.dumps(head)[:-1] + b',"rows":[' + b",".join(rows) + b"]}")

    def _message(self, rest: str) -> ApiReply:
        number, slash, what = rest.partition("/")
        seq = int(number) if number.isdecimal() and len(number) < 16 else 0
        if (slash and what != "curl") or not seq or seq > self.state.store.newest:
            raise ApiError(404, "unknown", f"there is no row {number[:20]}")
        answer = message_answer(self.state, seq)
        if answer is None:
            raise ApiError(410, "dropped", "the message was dropped: newer ones took its place")
        return json_reply(self._curl(seq) if slash else answer)

    def _curl(self, seq: int) -> Any:
        record = self.state.store.record(seq)
        row = self.state.store.row(seq)
        found = None if record is None or row is None else curl(record, self.state.server(row[2]))
        if found is None:
            remedy = NO_PAYLOAD if record is not None and record.metadata.frame is None else ""
            why = "only a client's message to a running guard over HTTP can be sent again"
            raise ApiError(409, "unreachable", why, remedy=remedy)
        return {"command": found[0], "notes": found[1]}

    def _findings(self, _: ApiRequest) -> Any:
        board = self.state.findings
        return {
            "groups": board.answer(),
            "rules": dict(board.rules()),
            "wouldBlock": board.would_block,
            "blocked": board.blocked,
        }

    def _contracts(self, request: ApiRequest) -> Any:
        chosen = self._chosen(request)
        servers = [chosen] if chosen is not None else self._known_servers()
        return {"contracts": [self.state.contract(each) for each in servers]}

    def _known_servers(self) -> list[ServerFacts]:
        found = (self.state.server(each["id"]) for each in self.state.servers(0.0))
        return [each for each in found if each is not None]

    def _sessions(self, _: ApiRequest) -> Any:
        return {"sessions": self.state.sessions.answer()}

    def _performance(self, request: ApiRequest) -> Any:
        chosen = self._chosen(request)
        return {"lines": self.state.performance.answer(None if chosen is None else chosen.id)}

    def _chosen(self, request: ApiRequest) -> ServerFacts | None:
        if "server" not in request.query:
            return None
        return self.server_of(number_of(request, "server", 0))

    def server_of(self, ident: Any) -> ServerFacts:
        """Return the server with this number. Raises `ApiError`."""
        found = self.state.server(ident) if type(ident) is int else None
        if found is None:
            raise ApiError(404, "unknown", "there is no such server")
        return found


_GETS: Final[dict[str, Callable[[ConsoleAnswers, ApiRequest], Any]]] = {
    "state": ConsoleAnswers._state,
    "findings": ConsoleAnswers._findings,
    "contracts": ConsoleAnswers._contracts,
    "sessions": ConsoleAnswers._sessions,
    "performance": ConsoleAnswers._performance,
}
