"""Carries out a table of exchanges through one guard, and reports what came of each."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from endings import Ending, Ends
from exchange_rows import PONG, Expected, Item, Row, req
from obedient_server import BLANKS, PLACE, blanked
from pairings import Http, Pairing

from kit.http_client import until
from kit.journals import records
from kit.valid_traffic import TOOL, opening


def filled(text: str, name: str) -> bytes:
    """A line of the row *name*, as it is sent."""
    whole = text.replace("ID", json.dumps(name)).replace("ROW", name).replace("TOOL", json.dumps(TOOL))
    return whole.encode()


def with_journal(kind: type[Pairing], timeout: float) -> type[Pairing]:
    """*kind*, with a journal and a timeout."""

    class Recorded(kind):  # type: ignore[misc, valid-type]  # the base is any pairing
        @property
        def options(self) -> list[str]:
            """Those of the guard."""
            more = ["--set", "guard.flights=off", "--set", f"guard.timeout={timeout}"]
            return ["--mode", self.mode, "--quiet", "--journal", "journal", *more]

    return Recorded


class TableRun:
    """One guard, and the rows that go through it one after the other."""

    def __init__(self, kind: type[Pairing], place: Path, revision: str, mode: str, *, timeout: float = 60.0) -> None:
        self.place = place
        self.mode = mode
        self.pairing = with_journal(kind, timeout)(place, revision, mode)
        self.opening = opening(revision)
        self.gets: dict[str, list[Item]] = {}
        self._sent: list[bytes] = []
        self._waiting: list[bytes] = []

    def carry_out(self, rows: Sequence[Row]) -> None:
        """Send every row, and wait for what is expected of it."""
        (self.place / "script").write_text(json.dumps(self._script(rows)))
        with self.pairing:
            self._open()
            for row in rows:
                self.gets[row.name] = self._row(row)
            self.pairing.leave()
            while self._waiting or (lines := self.pairing.receive()):
                self.gets.setdefault("", []).extend(bare(each).decode() for each in self._waiting or lines)
                self._waiting = []
            self.pairing.stop()

    def _open(self) -> None:
        for step in self.opening:
            self._send(step.asked)
            for _ in step.answered:
                self._next()

    def _script(self, rows: Sequence[Row]) -> dict[str, str]:
        found = {step.asked.removesuffix(b"\n"): b"".join(step.answered) for step in self.opening}
        for row in rows:
            said = b"".join(filled(each, row.name) + b"\n" for each in row.server)
            asked = filled(row.client, row.name)
            # The guard writes a space for a carriage return that HTTP brought: it would end the line of a child.
            found[asked] = found[asked.replace(b"\r", b" ")] = said
        if self.pairing.blanks:
            found = {blanked(asked): _blank(asked, said) for asked, said in found.items()}
        return {hashlib.sha256(asked).hexdigest(): said.decode("latin-1") for asked, said in found.items() if said}

    def _row(self, row: Row) -> list[Item]:
        said = [filled(each, row.name) for each in row.server]
        self._send(filled(row.client, row.name) + b"\n")
        got: list[Item] = []
        while len(got) < len(row.expected(self.pairing.name, self.mode).gets):
            line = self._next()
            got.append(shown(bare(line), row.name, said))
            if row.reply and b'"method"' in line:
                self._send(filled(row.reply, row.name) + b"\n")
        return got

    def _send(self, line: bytes) -> None:
        self._sent += {bare(line), bare(line).replace(b"\r", b" ")}
        assert self.pairing.send([line])
        if isinstance(self.pairing, Http):
            # The body of a response to anything but a request.
            beside = self.pairing.client.beside
            self._waiting += beside
            beside.clear()

    def _next(self) -> bytes:
        while not self._waiting:
            lines = self.pairing.receive()
            assert lines, "nothing more comes"
            self._waiting += lines
        return self._waiting.pop(0)

    # ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────────

    def received(self) -> list[bytes]:
        """What the server got."""
        path = self.place / "received"
        return path.read_bytes().split(b"\n")[:-1] if path.exists() else []

    def reached(self, row: Row) -> bool:
        """Whether the server got the client's line."""
        spelt = blanked if self.pairing.blanks else bytes
        return spelt(filled(row.client, row.name)) in [spelt(each) for each in self.received()]

    def own(self) -> list[str]:
        """What the guard itself sent to the server."""
        spelt = blanked if self.pairing.blanks else bytes
        raw = {spelt(each): each for each in self.received()}
        left = Counter(map(spelt, self.received())) - Counter(map(spelt, self._sent))
        return sorted(_own(json.loads(raw[each])) for each in left.elements() if each.strip())

    def found(self) -> list[str]:
        """The findings in the journal."""
        found: list[str] = []
        for record in records(self.place / "journal"):
            wrong = (record["error"] or {}).get("violations", ())
            mark = " (reported)" if record["status"] == "reported" else ""
            times = record["metadata"].get("repeated", 1)
            found += [f"{record['metadata']['party']} {each['rule']}{mark}" for each in wrong] * times
        return sorted(found)


def bare(line: bytes) -> bytes:
    """Without the end of the line."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def shown(line: bytes, name: str, said: list[bytes]) -> Item:
    """What the client got, as the table has it."""
    if line in said:
        return said.index(line)
    try:
        message: Any = json.loads(line)
    except ValueError:
        return line.decode("latin-1")
    if isinstance(message, dict) and isinstance(message.get("error"), dict):
        code: int = message["error"]["code"]
        return code if message.get("id") == name else f"{json.dumps(message.get('id'))} {code}"
    result = message.get("result") if isinstance(message, dict) and message.get("id") == name else None
    if isinstance(result, dict) and result.get("isError") is True:
        return "isError"
    if isinstance(result, dict) and "tools" in result:
        return "tools " + " ".join(each["name"] for each in result["tools"])
    return line.decode("latin-1")


def _own(message: Any) -> str:
    return f"error {message['error']['code']}" if "error" in message else str(message.get("method", message))


def _blank(asked: bytes, said: bytes) -> bytes:
    """What is *said* to a request, with blanks for its id."""
    own = next((json.loads(each) for _, name, each in PLACE.findall(asked) if name == b"id"), None)
    blank = BLANKS[b"id"]
    return PLACE.sub(lambda each: each[1] + blank if json.loads(each[3]) == own else each[0], said)


class EndingRun(TableRun):
    """One guard, one open request, and an ending."""

    def end(self, ending: Ending) -> Ends:
        """What comes of it."""
        hang, ping = (Row(name, req("ping"), answer, Expected()) for name, answer in (("hang", ()), ("after", (PONG,))))
        (self.place / "script").write_text(json.dumps(self._script([hang, ping])))
        client: list[Item] = []
        with self.pairing:
            self._open()
            self._send(filled(hang.client, hang.name) + b"\n")
            until(lambda: self.reached(hang))
            if ending.how == "leave":
                self.pairing.leave()
            elif ending.how == "kill":
                self.pairing.kill()
            client += self._answer("hang")
            if ending.how == "wait":
                self._send(filled(ping.client, ping.name) + b"\n")
                client += self._answer("after")
            if ending.how != "leave":
                self.pairing.leave()
            while self.pairing.receive():
                pass
            status = self.pairing.stop()
        return Ends(tuple(client), tuple(self.own()), tuple(self.found()), status)

    def _answer(self, name: str) -> list[Item]:
        """What comes to the request *name*; nothing if the conversation ends without an answer."""
        while self._waiting or (lines := self.pairing.receive()):
            self._waiting += [] if self._waiting else lines
            line = bare(self._waiting.pop(0))
            if json.dumps(name).encode() in line:
                return [shown(line, name, [filled(PONG, name)])]
        return []
