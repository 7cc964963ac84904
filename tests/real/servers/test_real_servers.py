"""
Servers from the registries behind the guard, with the official clients in front of it: real processes on every side.

A client is to get the same answers as without the guard, and every tool of every server is called. What a server or a
client gets wrong by our judgement is in `findings.json`, each with the reason; anything else that the guard says of
them is a mistake of the guard.
"""

import base64
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from real_servers import GUARD, HERE, NODE_MODULES, SERVERS, Server, environment

from kit import journals
from kit.http_client import Log
from kit.official_clients import SECONDS, reported, skip_without

INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")

FINDINGS: dict[str, list[dict[str, str]]] = json.loads((HERE / "findings.json").read_bytes())

TALKS = [
    *((name, "python", True) for name in SERVERS if name not in {"git", "time", "memory"}),
    # Who is not told otherwise asks for the newest revision first, and these two servers have it.
    *((name, "python", False) for name in ("time", "git")),
    *((name, "typescript", False) for name in ("everything", "memory")),
]
if "LAWS" not in os.environ:
    # One of each kind, beside the one that is asked over HTTP; `make soak` has all of them.
    QUICK = {("sqlite", "python"), ("git", "python"), ("memory", "typescript")}
    TALKS = [each for each in TALKS if each[:2] in QUICK]
IDS = [f"{name}-{client}-{'handshake' if handshake else 'unasked'}" for name, client, handshake in TALKS]


def installed(server: Server, client: str) -> None:
    """Skips what cannot be run here, and says why."""
    for each in (client, *(["typescript"] if server.needs == NODE_MODULES else [])):
        skip_without(each)
    if not server.needs.exists():
        pytest.skip(f"{server.needs} is missing: `make test` installs it")


Finding = tuple[str, str, str]
"""Who has done wrong, in which method or tool, and by which rule."""


class Talk:
    """One server, asked by one client: alone, and behind the guard in either mode."""

    def __init__(self, place: Path, name: str, client: str, *, handshake: bool) -> None:
        self.place = place
        self.name = name
        self.server = SERVERS[name]
        self.client = client
        self.handshake = handshake
        self.steps = self.server.steps(place)

    def reports(self, *modes: str) -> list[Any]:
        """What the client reports without the guard, and with the guard in these *modes*; all at the same time."""
        with ThreadPoolExecutor(1 + len(modes)) as pool:
            guarded = [
                pool.submit(
                    self._report, mode, *GUARD, "--mode", mode, "--journal", str(self.place / f"{mode}-log"), "--"
                )
                for mode in modes
            ]
            return [self._report("alone"), *(each.result() for each in guarded)]

    def _report(self, run: str, *before: str) -> Any:
        """What the client reports; *before* comes before the server's command. Every run begins with the same files."""
        directory = self._prepared(run)
        command = [*before, *self.server.command(directory)]
        served = {"command": command[0], "args": command[1:], "cwd": str(directory)}
        return self._asked(run, {**served, "env": environment(self.server, directory)})

    def over_http(self, mode: str) -> Any:
        """What the client reports of the server as a child of a guard that listens."""
        directory = self._prepared(mode)
        given = environment(self.server, directory)
        options = ["--listen", "127.0.0.1:0", "--mode", mode, "--journal", str(self.place / f"{mode}-log")]
        with subprocess.Popen(
            [*GUARD, *options, "--", *self.server.command(directory)],
            cwd=directory,
            # The SDK lets a server that it starts have these as well, in this order; one of them tells what it has.
            env={**{each: os.environ[each] for each in INHERITED if each in os.environ}, **given},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            log = Log(process.stderr)
            try:
                return self._asked(mode, {"url": log.line("assay: guarding ").rpartition(" at ")[2]})
            finally:
                process.terminate()
                process.wait(SECONDS)
                (self.place / f"{mode}.txt").write_text("\n".join(log.whole()))

    def _prepared(self, run: str) -> Path:
        directory = self.place / run
        directory.mkdir()
        self.server.prepare(directory)
        return directory

    def _asked(self, run: str, server: dict[str, Any]) -> Any:
        directory = self.place / run
        plan = {"server": server, "handshake": self.handshake, "steps": self.server.steps(directory)}
        log = self.place / f"{run}.txt"
        report = usual(reported(self.client, plan, log, replaced=(str(directory), "DIRECTORY")))
        # The TypeScript client loses what is said just before an answer, now and then.
        for step in report["steps"]:
            if step and step.get("progress"):
                step["progress"] = [each for each in step["progress"] if each[0] != each[1]]
        # Some of it is said when a timer runs out, before or after the rest.
        report["heard"] = {kind: sorted(said, key=json.dumps) for kind, said in report["heard"].items()}
        return report

    def log(self, run: str) -> str:
        """What the server, and the guard, have written to stderr."""
        return (self.place / f"{run}.txt").read_text()

    def findings(self, mode: str) -> set[Finding]:
        """What the guard has found wrong."""
        found = set()
        for record in journals.records(self.place / f"{mode}-log" / ".latest"):
            about = record["metadata"]
            for each in (record["error"] or {}).get("violations", ()):
                found.add((about["party"], about.get("tool") or record["method"], each["rule"]))
        return found

    def expected(self, report: Any) -> set[Finding]:
        """What it is to find: what the plan does wrong on purpose, and what is known of the server and the client."""
        listed = {each["name"] for each in report["tools"]["result"]["tools"]}
        misuse = {("client", step[1], "contract/input") for step in self.steps if step[0] == "misuse"}
        unknown = {
            ("client", step[1], "contract/unknown-tool")
            for step in self.steps
            if step[0] == "call" and step[1] not in listed
        }
        known = [each for each in FINDINGS[self.name] if self.client in each["clients"]]
        return misuse | unknown | {(each["party"], each["in"], each["rule"]) for each in known}


# ── what differs from run to run ─────────────────────────────────────────────────────────────────────────────────────

CHANGING = [
    (re.compile(r"\d{1,2}:\d\d:\d\d [AP]M"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"), "MOMENT"),
    (re.compile(r"(accessed|modified|created): .*"), r"\1: MOMENT"),
    (re.compile(r"\w{3} \w{3} \d\d \d{4} \d\d:\d\d:\d\d GMT[^\n\"]*"), "MOMENT"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
]
SIMULATED = re.compile(r"(Debug|Info|Notice|Warning|Error|Critical|Alert|Emergency)[- ]level[- ]message")
"""The log of a server that says something at random."""


def usual(value: Any) -> Any:
    """*value* without what no two runs have in common: times and ids that a server makes up."""
    if isinstance(value, dict):
        return {name: usual(unpacked(each) if name == "blob" else each) for name, each in value.items()}
    if isinstance(value, list):
        return [usual(each) for each in value if not is_simulated(each)]
    if isinstance(value, str):
        for pattern, name in CHANGING:
            value = pattern.sub(name, value)
    return value


def unpacked(blob: Any) -> Any:
    """Text in base64 may have the time in it."""
    if not isinstance(blob, str):
        return blob
    try:
        return base64.b64decode(blob).decode()
    except ValueError:
        return blob


def is_simulated(value: Any) -> bool:
    """Whether it is a line of a log that comes by chance, alone or in its message."""
    return isinstance(value, dict) and SIMULATED.match(str(value.get("params", value).get("data"))) is not None


# ── the tests ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "client", "handshake"), TALKS, ids=IDS)
def test_a_real_server_answers_the_same_behind_the_guard(
    tmp_path: Path, name: str, client: str, handshake: bool
) -> None:
    """
    Every answer, and everything that it asks and says unasked; under audit also what is wrong.

    The guard finds what it is known to find, and under enforce stops nothing but misuse, of which both make an error.
    """
    installed(SERVERS[name], client)
    talk = Talk(tmp_path, name, client, handshake=handshake)
    # Under audit nothing is done to a message: one server is enough to see what is found.
    modes = ["enforce", "audit"] if name == "sqlite" else ["enforce"]
    alone, enforced, *audited = talk.reports(*modes)
    assert audited == [alone] * len(audited)
    for mode in modes:
        assert talk.findings(mode) == talk.expected(alone)
    same_but_misuse(talk, alone, enforced)
    called = {given[0] for verb, *given in talk.steps if verb == "call"}
    assert {each["name"] for each in alone["tools"]["result"]["tools"]} <= called


def same_but_misuse(talk: Talk, alone: Any, enforced: Any) -> None:
    """Under enforce nothing is stopped but misuse, of which both make an error."""
    for number, (verb, *_) in enumerate(talk.steps):
        if verb == "misuse":
            for report in (alone, enforced):
                assert report["steps"][number]["result"]["isError"] is True
                report["steps"][number] = None
    for step, one, other in zip(talk.steps, alone["steps"], enforced["steps"], strict=True):
        assert other == one, step
    assert enforced == alone
    assert talk.log("enforce").count("assay: blocked") == sum(verb == "misuse" for verb, *_ in talk.steps)


def test_a_real_server_that_speaks_over_its_streams_answers_the_same_over_http(tmp_path: Path) -> None:
    """The guard puts it there; a client that has never heard of standard streams notices nothing."""
    installed(SERVERS["everything"], "python")
    talk = Talk(tmp_path, "everything", "python", handshake=True)
    with ThreadPoolExecutor(2) as pool:
        enforced, audited = (pool.submit(talk.over_http, mode) for mode in ("enforce", "audit"))
        [alone] = talk.reports()
    for step, one, other in zip(talk.steps, alone["steps"], audited.result()["steps"], strict=True):
        assert other == one, step
    assert audited.result() == alone
    for mode in ("enforce", "audit"):
        assert talk.findings(mode) == talk.expected(alone)
    same_but_misuse(talk, alone, enforced.result())


def test_every_known_finding_has_its_reason() -> None:
    assert FINDINGS.keys() == SERVERS.keys()
    for each in (each for known in FINDINGS.values() for each in known):
        assert each.keys() == {"party", "in", "rule", "clients", "why"}
        assert each["why"].endswith(".")
