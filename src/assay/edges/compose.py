"""`assay guard --listen`: everything put together, and what an operator can get wrong about it."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, NamedTuple, Protocol

from assay.edges.auth import Gate, Principal
from assay.edges.backend import Backend
from assay.edges.card_route import CardRoute
from assay.edges.child import unstartable
from assay.edges.http.access import Door
from assay.edges.http.http_server import serve
from assay.edges.http.listen_address import ListenAddress
from assay.edges.http.replies import Pairs, Route
from assay.edges.http.request_headers import ENDPOINT
from assay.edges.http_front import Front
from assay.edges.oauth_discovery import Discovery
from assay.edges.recorder import Recorder, Records
from assay.edges.server_index import index, row
from assay.edges.stderr_writer import hello
from assay.edges.upstream_errors import shown_url
from assay.edges.upstream_target import UpstreamTarget
from assay.edges.url_backend import UrlBackend
from assay.guard.connection_name import ANONYMOUS
from assay.guard.factory import SessionFactory
from assay.guard.sinks import Sinks
from assay.guard.summary import GuardSummary
from assay.guard.terms import Terms
from assay.lock.locked import Locked
from assay.model.printable import labelled
from assay.records.http_notes import HttpNotes
from assay.records.metrics import Metrics
from assay.records.record import ServerPlace
from assay.records.recording import Recording
from assay.settings import Settings, SettingsError
from assay.spec.revisions import REVISIONS
from assay.spec.schema import protocol_schema

Log = Callable[[str], None]

_BESIDE: Final = 128
"""Connections to a server for notices of the guard, and for documents about tokens."""


class Kept(NamedTuple):
    """Where what is recorded of one server goes."""

    records: Records
    flights: str
    """The directory for the last messages of broken sessions; ``off`` for none."""


Keep = Callable[[str, str], Kept]
"""Returns where the records of the server with this name, at this route, go. It opens a journal if need be."""


class Composition(NamedTuple):
    """What every backend is built with."""

    terms: Terms
    settings: Settings
    keep: Keep
    metrics: Metrics
    tended: list[Callable[[], None]]
    """What is called once a second, for the journal of each server that was asked for."""
    watch: GuardSummary
    gated: bool
    """Whether the guard sees for itself who may come in: then a client's token is for it, and not for the server."""
    say: Log
    locked: Callable[[Sequence[str], str, str], Locked | None]
    """
    What a server is held to, by its command, its URL, and the name that a client's file gives it.

    Raises `SettingsError`.
    """
    errors: Callable[[bytes], None]
    """What servers write to stderr goes there."""
    recording: Recording | None = None
    name: str = ""
    """The name of the server that it is for; the desk of a host makes one for each server."""
    entry: str = ""
    """The same, where a client's file gives the name: the lock may have the server by it."""
    address: str = ""
    """The scheme, host and port where clients connect to."""

    def for_server(self, name: str) -> "Composition":
        """Return the desk of one of several servers: each of its lines has its *name*."""
        return self._replace(watch=self.watch.of_server(name), say=labelled(self.say, name), name=name, entry=name)

    def _factory(self, route: str, command: Sequence[str] = (), url: str = "") -> tuple[SessionFactory, str]:
        """Return the factory for the server at *route*, and the directory for last messages of broken sessions."""
        locked = self.locked(command, url, self.entry)
        kept = self.keep(self.name, route)
        http = HttpNotes(route) if self.settings.journal.payloads else None
        records = Sinks(self._recorder(route, kept, http).sinks)
        if kept.records.journal is not None:
            place = ServerPlace(command, url, f"{self.address}{route}", locked is not None)
            kept.records.journal.introduce("http", route, place)
        made = SessionFactory(
            self.terms, records, self.watch, locked, recording=self.recording, server=self.name, http=http
        )
        return made, kept.flights

    def _recorder(self, route: str, kept: Kept, http: HttpNotes | None) -> Recorder:
        """Return the recorder of the server at *route*."""
        records = kept.records._replace(metrics=self.metrics)
        self.tended.append(Recorder("http", route, records).flush)
        return Recorder("http", route, records, holding=True, http=http)

    def proxy(self, url: str, headers: Pairs, route: str, *, alone: bool = True) -> UrlBackend:
        """The server at *url*, *alone* at this address or not. Raises `ValueError` if that is no URL."""
        http = self.settings.http
        # Every request and every stream of a client may have a connection, and so may what the guard sends itself.
        target = UpstreamTarget(
            url, headers, self.settings.upstream, connections=http.requests + http.streams + _BESIDE
        )
        factory, flights = self._factory(route, url=url)
        return UrlBackend(
            factory,
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
        command: Sequence[str],
        route: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Backend:
        """The server that *command* starts, in our own environment or *env*."""
        backend = import_module("assay.edges.child_backend").ChildBackend
        factory, flights = self._factory(route, command)
        made: Backend = backend(
            factory,
            command,
            env=env,
            cwd=cwd,
            children=self.settings.guard.children,
            children_each=self.settings.guard.children_each if self.gated else None,
            http=self.settings.http,
            flights=flights,
            redact=self.settings.journal.redact,
            stderr_in_errors=self.settings.guard.stderr_in_errors,
            errors=self.errors,
            name=self.name,
        )
        return made


class Servers(Protocol):
    """What is guarded."""

    @property
    def what(self) -> str:
        """For people."""

    def backends(self, desk: Composition) -> Mapping[str, Backend]:
        """By path. Raises `SettingsError`."""

    def beside(self, backends: Mapping[str, Backend], door: Door) -> Mapping[str, Route]:
        """Further routes, by path."""


class AtUrl(NamedTuple):
    """One server, at a URL."""

    url: str
    headers: Pairs
    name: str

    @property
    def what(self) -> str:
        """Its name."""
        return self.name

    def backends(self, desk: Composition) -> Mapping[str, Backend]:
        """The one."""
        try:
            return {ENDPOINT: desk.proxy(self.url, self.headers, ENDPOINT)}
        except ValueError as error:
            raise SettingsError(f"--target {shown_url(self.url)}: {error}") from None

    def beside(self, backends: Mapping[str, Backend], door: Door) -> Mapping[str, Route]:
        """A page about it, its card, and who gives out tokens for it, where that is not ours to say."""
        proxy = backends[ENDPOINT]
        routes = {"/": index(lambda: [row(ENDPOINT, self.name, proxy, url=self.url)], door)}
        if not isinstance(proxy, UrlBackend):
            return routes
        routes |= CardRoute(proxy, door).routes()
        if door.gate is None:
            discovery = Discovery(proxy.target, ENDPOINT, door, enforcing=proxy.factory.enforcing)
            routes |= discovery.routes(alone=True)
        return routes


class Started(NamedTuple):
    """One server, which a command starts."""

    command: Sequence[str]
    name: str

    @property
    def what(self) -> str:
        """Its name: of most commands the first word is only what runs the server."""
        return self.name

    def backends(self, desk: Composition) -> Mapping[str, Backend]:
        """The one. Raises `SettingsError` if it could only fail, as it does where no address is listened at."""
        why = unstartable(self.command)
        if why is not None:
            raise SettingsError(why)
        return {ENDPOINT: desk.children(self.command, ENDPOINT)}

    def beside(self, backends: Mapping[str, Backend], door: Door) -> Mapping[str, Route]:
        """A page about it."""
        return {"/": index(lambda: [row(ENDPOINT, self.name, backends[ENDPOINT], self.command)], door)}


def run(
    address: str,
    settings: Settings,
    terms: Terms,
    keep: Keep,
    servers: Servers,
    *,
    locked: Callable[[Sequence[str], str, str], Locked | None] = lambda _, __, ___: None,
    settle: Callable[[], None],
    errors: Callable[[bytes], None],
    say: Log,
    log: Log,
    ready: Log | None = None,
    recording: Recording | None = None,
    name: str = "",
    journal: str | None = None,
    status: Callable[[GuardSummary], int] = lambda _: 0,
) -> int:
    """
    Guard *servers* at *address* until a signal comes; the exit status.

    *keep* returns where the records of each server go; *journal* is one of its files, whose directory is named at the
    start. Findings go to *log*, what servers write to stderr to *errors*, all else to *say*. None of them may wait.
    *ready* gets the scheme, host and port once clients are served there, and introduces us in our place. Messages are
    written to *recording*, if there is one. *name* is that of the server, if there is one only. *status* makes the exit
    status of what was seen.
    """
    gate = Gate.read(settings.auth, cwd=".", tier=settings.tiers.tier, log=say)
    place = ListenAddress.open("--listen", address, settings.http, gated=gate is not None)
    metrics = Metrics()
    watch = GuardSummary(
        log,
        log,
        enforcing=terms.enforcing,
        keeping=settings.guard.flights != "off",
        redact=settings.journal.redact,
        name=servers.what,
    )
    desk = Composition(
        terms,
        settings,
        keep,
        metrics,
        [],
        watch,
        gate is not None,
        say,
        locked,
        errors,
        recording,
        name,
        address=place.url,
    )
    backends = servers.backends(desk)
    # Before clients can connect: a request must not wait for a file.
    for revision in REVISIONS:
        protocol_schema(revision)
    door = Door(place.safety, gate, Principal(ANONYMOUS, settings.tiers.tier), say)
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

    def begun() -> None:
        if ready is not None:
            ready(place.url)
            return
        say(hello(servers.what, terms.mode, journal, f"{place.url}{endpoint}"))
        for line in place.notes(endpoint):
            say(f"assay: {line}")

    serve(front, place.sock, settings.http, begun, owner_of=door.owner_of)
    for line in watch.summary():
        log(line)
    return status(watch)


def _tend(tended: Sequence[Callable[[], None]]) -> None:
    for tend in tended:
        tend()


def _sessions(backends: Mapping[str, Backend]) -> int:
    return sum(getattr(each, "sessions", 0) for each in backends.values())
