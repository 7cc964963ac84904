"""`assay guard --listen`: everything put together, and what an operator can get wrong about it."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol

from assay.auth import Gate, Principal
from assay.edges.child import unstartable
from assay.edges.guard.front.front import Front
from assay.edges.guard.front.guarded import Backend
from assay.edges.guard.http_to_http.oauth import Discovery
from assay.edges.guard.http_to_http.proxy import Proxy
from assay.edges.guard.http_to_http.target import Target
from assay.edges.guard.overseer import Oversight
from assay.edges.guard.stdio_to_http.upstream import shown_url
from assay.edges.http.asking import ENDPOINT
from assay.edges.http.door import Door
from assay.edges.http.place import Place
from assay.edges.http.replies import Pairs, Route
from assay.edges.http.server import serve
from assay.edges.recorder import Recorder, Records
from assay.guard.terms import Terms
from assay.guard.watch import Watch
from assay.lock.locked import Locked
from assay.metrics import Metrics
from assay.settings import Settings, SettingsError
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema

Log = Callable[[str], None]


class Kept(NamedTuple):
    """Where what is recorded of one server goes."""

    records: Records
    flights: str
    """The directory for the last messages of broken sessions; ``off`` for none."""


Keep = Callable[[str, str], Kept]
"""Returns where the records of the server called so go, and names its route in them. Called once a server."""


class Desk(NamedTuple):
    """What every backend is built with."""

    terms: Terms
    settings: Settings
    keep: Keep
    metrics: Metrics
    tended: list[Callable[[], None]]
    """What is called once a second, for the journal of each server that was asked for."""
    watch: Watch
    gated: bool
    """Whether the guard sees for itself who may come in: then a client's token is for it, and not for the server."""
    say: Log
    locked: Callable[[Sequence[str], str], Locked | None]
    """What the server of a command, or at a URL, is held to. Raises `SettingsError`."""
    errors: Callable[[bytes], None]
    """What servers write to stderr goes there."""

    def oversight(self, name: str, route: str, command: Sequence[str] = (), url: str = "") -> tuple[Oversight, str]:
        """The oversight of the server called *name* at *route*, and the directory for its flights."""
        locked = self.locked(command, url)
        kept = self.keep(name, route)
        records = kept.records._replace(metrics=self.metrics)
        self.tended.append(Recorder("http", route, records).flush)
        return Oversight(self.terms, Recorder("http", route, records, holding=True), self.watch, locked), kept.flights

    def proxy(self, name: str, url: str, headers: Pairs, route: str, *, alone: bool = True) -> Proxy:
        """The server called *name* at *url*, *alone* at this address or not. Raises `ValueError` if that is no URL."""
        target = Target(url, headers)
        oversight, flights = self.oversight(name, route, url=url)
        return Proxy(
            oversight,
            target,
            self.settings.http,
            endpoint=route,
            gated=self.gated,
            alone=alone,
            log=self.say,
            flights=flights,
            redact=self.settings.journal.redact,
        )

    def children(
        self,
        name: str,
        command: Sequence[str],
        route: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Backend:
        """
        The server called *name* that *command* starts, in our own environment or *env*.

        Raises `ImportError` if there is none.
        """
        children = import_module("assay.edges.guard.http_to_child.children").Children
        oversight, flights = self.oversight(name, route, command)
        made: Backend = children(
            oversight,
            command,
            env=env,
            cwd=cwd,
            shared=self.settings.guard.shared,
            children=self.settings.guard.children,
            children_each=self.settings.guard.children_each if self.gated else None,
            http=self.settings.http,
            flights=flights,
            redact=self.settings.journal.redact,
            stderr_in_errors=self.settings.guard.stderr_in_errors,
            errors=self.errors,
            name=route.removesuffix(ENDPOINT).strip("/"),
        )
        return made


class Servers(Protocol):
    """What is guarded."""

    @property
    def what(self) -> str:
        """For people."""

    def backends(self, desk: Desk) -> Mapping[str, Backend]:
        """By path. Raises `SettingsError`."""

    def beside(self, backends: Mapping[str, Backend], door: Door) -> Mapping[str, Route]:
        """Further routes, by path."""


class AtUrl(NamedTuple):
    """One server, at a URL."""

    name: str
    url: str
    headers: Pairs

    @property
    def what(self) -> str:
        """Its URL, without what could be a secret."""
        return shown_url(self.url)

    def backends(self, desk: Desk) -> Mapping[str, Backend]:
        """The one."""
        try:
            return {ENDPOINT: desk.proxy(self.name, self.url, self.headers, ENDPOINT)}
        except ValueError as error:
            raise SettingsError(f"--target {shown_url(self.url)}: {error}") from None

    def beside(self, backends: Mapping[str, Backend], door: Door) -> Mapping[str, Route]:
        """Who gives out tokens for it, where that is not ours to say."""
        proxy = backends[ENDPOINT]
        if door.gate is not None or not isinstance(proxy, Proxy):
            return {}
        return Discovery(proxy.target, ENDPOINT, door, enforcing=proxy.oversight.enforcing).routes(alone=True)


class Started(NamedTuple):
    """One server, which a command starts."""

    name: str
    command: Sequence[str]

    @property
    def what(self) -> str:
        """Its program."""
        return self.command[0]

    def backends(self, desk: Desk) -> Mapping[str, Backend]:
        """The one. Raises `SettingsError` if it could only fail, as it does where no address is listened at."""
        why = unstartable(self.command)
        if why is not None:
            raise SettingsError(why)
        try:
            return {ENDPOINT: desk.children(self.name, self.command, ENDPOINT)}
        except ImportError:
            raise SettingsError("--listen with a COMMAND: not yet") from None

    def beside(self, _: Mapping[str, Backend], __: Door) -> Mapping[str, Route]:
        """None: there is nothing else to be had of it."""
        return {}


def run(
    address: str,
    settings: Settings,
    terms: Terms,
    keep: Keep,
    servers: Servers,
    *,
    locked: Callable[[Sequence[str], str], Locked | None] = lambda _, __: None,
    settle: Callable[[], None],
    errors: Callable[[bytes], None],
    say: Log,
    log: Log,
) -> int:
    """
    Guard *servers* at *address* until a signal comes; the exit status.

    *keep* returns where the records of each server go. Findings go to *log*, what servers write to stderr to *errors*,
    all else to *say*. None of them may wait.
    """
    gate = Gate.read(settings.auth, cwd=".", tier=settings.tiers.tier, log=say)
    metrics = Metrics()
    watch = Watch(
        log,
        log,
        enforcing=terms.enforcing,
        keeping=settings.guard.flights != "off",
        redact=settings.journal.redact,
    )
    desk = Desk(terms, settings, keep, metrics, [], watch, gate is not None, say, locked, errors)
    backends = servers.backends(desk)
    place = Place.open("--listen", address, settings.http, gated=gate is not None)
    # Before anybody is listened to: a request is no time to open a file.
    for revision in REVISIONS:
        protocol_schema(revision)
    door = Door(place.safety, gate, Principal("anonymous", settings.tiers.tier))
    front = Front(
        backends,
        door,
        settings.http,
        frame_bytes=terms.limits.frame_bytes,
        metrics=metrics.render,
        beside=servers.beside(backends, door),
        tend=lambda: _tend(desk.tended),
    )
    metrics.gauge("assay_sessions", "Sessions of the handshake revisions.", lambda: _sessions(backends))
    metrics.gauge("assay_streams", "Streams that are open.", lambda: front.streams)
    metrics.gauge("assay_requests_in_flight", "Requests in hand.", lambda: front.in_hand)
    settle()
    endpoint = ENDPOINT if ENDPOINT in backends else "/"
    serve(front, place.sock, settings.http, lambda: say(f"assay: guarding {servers.what} at {place.url}{endpoint}"))
    for line in watch.summary():
        log(line)
    return 0


def _tend(tended: Sequence[Callable[[], None]]) -> None:
    for tend in tended:
        tend()


def _sessions(backends: Mapping[str, Backend]) -> int:
    return sum(getattr(each, "sessions", 0) for each in backends.values())
