"""
The lines of good messages, from templates.

`record_of` makes the same lines from a `Record`; a test holds the two together. With records alone a call through the
guard over pipes takes 35 µs of CPU in place of 17, and 12 without a journal. No I/O.
"""

from time import perf_counter, time_ns
from typing import Any, Final

import orjson

from assay.model.verdict import Kind, Party, Verdict
from assay.records.moments import FRESH, Moment, shown_second
from assay.records.record import NAME_LENGTH, ROUTE_LENGTH, SCHEMA_VERSION, RunIdentity, cut, encoder, name_of, short_id

_MOST_KEPT: Final = 1024
"""Templates that are kept: methods times tools times two. Names are the peer's, and may be many."""

_PLAIN: Final[frozenset[Kind]] = frozenset({"request", "result", "notification"})
_CLIENT: Final = Party.CLIENT
_new_tuple: Final = tuple.__new__


class LineTemplates:
    """The lines of one run at one route."""

    __slots__ = ("_kept", "_route", "_run", "_second", "_sessions", "_shown", "_transport")

    def __init__(self, run: RunIdentity, transport: str, route: str) -> None:
        self._run = run
        self._transport, self._route = transport, route
        self._second, self._shown = 0.0, b""
        self._kept: dict[tuple[object, ...], bytes] = {}
        self._sessions: dict[str, bytes] = {}

    def clear(self) -> None:
        """Forget all templates: something that all records of the run have has changed."""
        self._kept.clear()

    def line(self, verdict: Verdict, moment: Moment | None, began: float, session: str, sent: int) -> bytes | None:
        """
        Return the record of *verdict*, which has no findings; None for a message that has no template.

        Without a *moment* a request gets one, which its result finds again.
        """
        # One long function: a `Moment`, a key and a line made by functions of their own took 25 % longer.
        kind, value, exchange = verdict.kind, verdict.value, verdict.exchange
        name: str | None
        if exchange is None:
            if moment is None or kind not in _PLAIN:
                return None
            ident: Any = value.get("id") if value is not None else None
            name = value.get("method") if value is not None else moment.method
            key: tuple[object, ...] = kind, verdict.party is _CLIENT, name, verdict.revision
            template = self._kept.get(key) or self._learned(key, verdict, name, None)
        else:
            moment = moment or exchange.moment
            if kind == "request":
                if moment is None:
                    params = value.get("params")
                    if params is not None and "traceparent" in params.get("_meta", ()):
                        return None
                    ids = next(FRESH.left, None) or FRESH.more()
                    fields = (self._transport, self._route, ids, began, session, exchange.entry.name, None)
                    exchange.moment = moment = _new_tuple(Moment, fields)
            elif kind != "result" or moment is None or (value is not None and value["result"].get("isError") is True):
                return None
            contract = exchange.contract
            if contract is not None:
                name = contract.name
            elif exchange.detail is None:
                name = None
            else:
                name = exchange.tool
            ident = exchange.id if exchange.spelling is None or value is None else value["id"]
            key = kind, exchange.entry, name
            template = self._kept.get(key) or self._learned(key, verdict, exchange.method, name)
        ended = perf_counter()
        micros = (ended - self._second) * 1e6
        if micros >= 1e6:
            micros = self._next_second(ended)
        end = b"%d" % ident if type(ident) is int else _encoded_id(ident)
        if session:
            end += self._sessions.get(session) or self._named(session)
        return template % (
            self._shown,
            micros,
            moment.ids,
            (ended - moment.began) * 1e3,
            len(verdict.frame),
            sent,
            end,
        )

    def pair(self, asked: Verdict, answer: Verdict, moment: Moment) -> bytes | None:
        """
        Return the records of a request and its result, which have no findings; None if the request has no exchange.

        The asset server knows both at once. With two calls of `line` a request over HTTP takes 230 bytecodes more, of
        3,000.
        """
        exchange = asked.exchange
        if exchange is None or exchange.spelling is not None:
            return None
        contract = exchange.contract
        name = contract.name if contract is not None else exchange.tool
        key = exchange.entry, name
        template = self._kept.get(key) or self._learned(key, asked, exchange.method, name, answer)
        ended = perf_counter()
        micros = (ended - self._second) * 1e6
        if micros >= 1e6:
            micros = self._next_second(ended)
        ident = exchange.id
        end = b"%d" % ident if type(ident) is int else _encoded_id(ident)
        if moment.session:
            end += self._sessions.get(moment.session) or self._named(moment.session)
        shown, ids, took = self._shown, moment.ids, (ended - moment.began) * 1e3
        came, went = len(asked.frame), len(answer.frame)
        return template % (
            shown, micros, ids, took, came, came, end,
            shown, micros, ids, took, went, went, end,
        )  # fmt: skip

    def _next_second(self, now: float) -> float:
        """Remember how the second is shown that it is *now*, by the clock of this module; return its microseconds."""
        stamp = time_ns()
        micros = stamp % 1_000_000_000 / 1e3
        self._second = now - micros / 1e6
        self._shown = shown_second(stamp).encode()
        return micros

    def _learned(
        self,
        key: tuple[object, ...],
        verdict: Verdict,
        method: str | None,
        tool: str | None,
        answer: Verdict | None = None,
    ) -> bytes:
        """Return a new template, also of the *answer* if there is one, and keep it."""
        template = self._template(verdict, method, tool)
        if answer is not None:
            template += self._template(answer, method, tool)
        # A thousand names of a megabyte are a gigabyte. And a key with the contract would keep its schemas, long after
        # its session has ended.
        if len(method or "") <= NAME_LENGTH and len(tool or "") <= NAME_LENGTH:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = template
        return template

    def _template(self, verdict: Verdict, method: str | None, tool: str | None) -> bytes:
        """
        Return the line of a good message without what is its own.

        That is: second, microseconds, ids, milliseconds, bytes in and out, id and session. Bytes, because formatting
        text takes twice the time.
        """
        run = self._run
        server = run.server_of(self._route)
        named = f'"server":{_json(server)},' if server else ""
        restarts = f',"restarts":{run.restarts}' if run.restarts else ""
        mode = f',"mode":{_json(run.mode)}' if run.mode else ""
        middle = (
            f'"transport":{_json(self._transport)},"route":{_json(cut(self._route, ROUTE_LENGTH))},'
            f'"method":{_json(name_of(method))},"status":"ok","durationMs":'
        )
        tail = (
            f',"error":null,"metadata":{{"schemaVersion":"{SCHEMA_VERSION}","deterministic":false,'
            f'"revision":{_json(verdict.revision)},"tool":{_json(name_of(tool))},'
            f'"party":"{verdict.party}","kind":"{verdict.kind}",{named}"id":'
        )
        end = f"{restarts}{mode}}}}}\n"
        # A name of a peer may have a percent sign in it.
        middle, tail, end = (each.replace("%", "%%") for each in (middle, tail, end))
        line = f'{{"ts":"%b%06dZ",%b,{middle}%.3f,"attempt":1,"inputBytes":%d,"outputBytes":%d{tail}%b{end}'
        return line.encode()

    def _named(self, session: str) -> bytes:
        if len(self._sessions) >= _MOST_KEPT:
            self._sessions.clear()
        members = self._run.connection(session).items()
        self._sessions[session] = name = "".join(f',"{member}":{_json(value)}' for member, value in members).encode()
        return name


def _encoded_id(ident: object) -> bytes:
    # Text without escapes is nearly always shorter than the limit; an integer may have more digits than msgspec writes.
    known = short_id(ident)
    return repr(known).encode() if isinstance(known, int) else encoder.encode(known)


def _json(text: str | None) -> str:
    return orjson.dumps(text).decode()
