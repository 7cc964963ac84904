"""Carries out a table of exchanges through one guard, and reports what came of each."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from exchange_rows import FRAME_BYTES, STATELESS, Expected, Item, Row, note, req
from obedient_http import HANGS
from obedient_server import BLANKS, PLACE, blanked, key
from pairings import Http, Pairing

from assay.lock.lock_file import write
from assay.lock.locked import Locked
from kit.journals import records
from kit.valid_traffic import INFO, TOOL, opening

OPTIONS = ["--journal", "journal", "--name", "locked", "--lock", "lock", "--set", f"guard.frame_bytes={FRAME_BYTES}"]


def filled(text: str, name: str) -> bytes:
    """A line of the row *name*, as it is sent."""
    whole = text.replace("ID", json.dumps(name)).replace("ROW", name).replace("TOOL", json.dumps(TOOL))
    return whole.encode()


HANG = Row(
    "hang",
    req("ping"),
    (note("notifications/message", json.dumps({"level": "info", "data": HANGS.decode()})),),
    *(Expected((0,)), Expected((0,)), (), ""),
)
"""A request that is never answered; a message of the server shows that it has come."""


class TableRun:
    """One guard, and the rows that go through it one after the other, a conversation for each revision."""

    def __init__(self, kind: type[Pairing], place: Path, mode: str, tables: Mapping[str, Sequence[Row]]) -> None:
        self.place = place
        self.mode = mode
        self.tables = tables
        self.pairing = kind(place, next(iter(tables)), mode, OPTIONS)
        self.gets: dict[str, list[Item]] = {}
        self._sent: list[bytes] = []
        self._waiting: list[bytes] = []
        write(
            place / "lock", {"locked": Locked(("run",), "", "2025-11-25", INFO, listed={"tools": {"search": (TOOL,)}})}
        )
        script = [self._script(revision, rows) for revision, rows in tables.items()]
        (place / "script").write_text(json.dumps({name: said for each in script for name, said in each.items()}))

    def converse(self, revision: str) -> None:
        """Send every row of one table, and wait for what is expected of it."""
        if self.pairing.revision != revision:
            self.pairing.leave()
            self._read_rest()
            self.pairing.converse(revision)
        for step in opening(revision):
            self._send(step.asked)
            for _ in step.answered:
                self._next()
        for row in self.tables[revision]:
            self.gets[row.name] = self._row(row)

    def end(self, how: str) -> list[Item]:
        """With a request open, the server is killed, or the client leaves: what comes to the request."""
        if how == "kill":
            if isinstance(self.pairing, Http):
                self.pairing.client.may_break = self.mode == "audit"
            self.pairing.kill()
            got = self._answers(HANG.name)
            self.pairing.leave()
        else:
            self.pairing.leave()
            got = self._answers(HANG.name)
        self._read_rest()
        return got

    def _answers(self, name: str) -> list[Item]:
        """What comes to the request *name*; nothing if the conversation ends without an answer."""
        while self._waiting or (lines := self.pairing.receive()):
            self._waiting += [] if self._waiting else lines
            line = bare(self._waiting.pop(0))
            if json.dumps(name).encode() in line:
                return [shown(line, name, [])]
        return []

    def _read_rest(self) -> None:
        while self._waiting or (lines := self.pairing.receive()):
            self.gets.setdefault("", []).extend(bare(each).decode() for each in self._waiting or lines)
            self._waiting = []

    def _script(self, revision: str, rows: Sequence[Row]) -> dict[str, str]:
        found = {step.asked.removesuffix(b"\n"): b"".join(step.answered) for step in opening(revision)}
        for row in rows:
            said = b"".join(filled(each, row.name) + b"\n" for each in row.server)
            asked = filled(row.client, row.name)
            # The guard writes a space for a carriage return that HTTP brought: it would end the line of a child.
            found[asked] = found[asked.replace(b"\r", b" ")] = said
        if self.blanks(revision):
            found = {blanked(asked): _blank(asked, said) for asked, said in found.items()}
        return {key(asked): said.decode("latin-1") for asked, said in found.items() if said}

    def blanks(self, revision: str) -> bool:
        """Whether the server sees other ids in conversations of that *revision*."""
        return self.pairing.renumbers and revision == STATELESS

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
        return (self.place / "received").read_bytes().split(b"\n")[:-1]

    def reached(self) -> dict[str, bool]:
        """Whether the server got the client's line of each row."""
        exact = set(self.received())
        loose = {blanked(each) for each in exact}
        found = {}
        for revision, rows in self.tables.items():
            for row in rows:
                line = filled(row.client, row.name)
                found[row.name] = blanked(line) in loose if self.blanks(revision) else line in exact
        return found

    def own(self) -> list[str]:
        """What the guard itself sent to the server."""
        spelt = blanked if self.pairing.renumbers else bytes
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
