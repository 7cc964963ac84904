"""
A host: every server of a client's configuration, each at its own path, each started on its first request.

A failure of one server is reported only to its own clients.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.edges.backend import Backend, HttpRequest, failure
from assay.edges.card_route import CardRoute
from assay.edges.child import unstartable
from assay.edges.compose import Composition
from assay.edges.http.access import Door
from assay.edges.http.replies import Receive, Route, Send, reply, shared, text
from assay.edges.http.request_headers import ENDPOINT
from assay.edges.oauth_discovery import Discovery
from assay.edges.server_index import Row, index, row, standing
from assay.edges.url_backend import UrlBackend
from assay.guard.hosted_server import HostedEntry, environment
from assay.model.printable import labelled
from assay.settings import SettingsError


class Hosted:
    """One server of the host."""

    def __init__(self, entry: HostedEntry, make: Callable[[], Backend], why_not: Callable[[], str] = str) -> None:
        """
        *make* creates its backend; it may raise `ValueError` or `OSError`, which clients then get as an error.

        *why_not* returns why it could not be started now; nothing if it could.
        """
        self.entry = entry
        self._trouble = entry.trouble
        """Why nothing answers for it, if nothing does."""
        self._make = make
        self._why_not = why_not
        self._backend: Backend | None = None

    @property
    def trouble(self) -> str:
        """Why it does not answer, as far as that is known: what happened last, or what would happen next."""
        return self._trouble or (self._why_not() if self._backend is None else standing(self._backend).trouble)

    @property
    def last_line(self) -> str:
        """The last line on stderr of a child that ended by itself."""
        return str(getattr(self._backend, "last_line", ""))

    @property
    def running(self) -> bool:
        """Whether a process of it runs, or the server at its URL answered last."""
        return self._backend is not None and standing(self._backend).running

    @property
    def state(self) -> str:
        """The state, as one word."""
        return standing(self).state

    @property
    def sessions(self) -> int:
        """How many it has."""
        return getattr(self._backend, "sessions", 0)

    def backend(self) -> Backend | None:
        """What answers for it, made when it is first asked for; None if there is some trouble."""
        if self._backend is None and not self.entry.trouble:
            try:
                self._backend = self._make()
                self._trouble = ""
            except (ValueError, OSError, ImportError, SettingsError) as error:
                self._trouble = str(error) or type(error).__name__
        return self._backend

    async def answer(self, request: HttpRequest, receive: Receive, send: Send) -> None:
        """Answer *request*, with an error if the server cannot be reached."""
        backend = self.backend()
        if backend is not None:
            await backend.answer(request, receive, send)
            return
        status, content = failure(request, "UPSTREAM_FAILURE", f"the server cannot be reached: {self._trouble}")
        await reply(send, status, content, shared(request.headers))

    def sweep(self) -> None:
        """Let the backend drop unused objects."""
        sweep = getattr(self._backend, "sweep", None)
        if sweep is not None:
            sweep()

    def stop(self) -> None:
        """Nothing new is begun."""
        if self._backend is not None:
            self._backend.stop()

    async def close(self) -> None:
        """Ends it, if it runs."""
        if self._backend is not None:
            await self._backend.close()


class Host:
    """The servers of one configuration."""

    def __init__(self, file: str, entries: Sequence[HostedEntry]) -> None:
        self._file = file
        self._entries = entries

    @property
    def what(self) -> str:
        """How many servers of which file; those that are not served do not count."""
        count = sum(not entry.trouble for entry in self._entries)
        return f"{count} server{'' if count == 1 else 's'} of {self._file}"

    def backends(self, desk: Composition) -> Mapping[str, Backend]:
        """Each at ``/<name>/mcp``."""
        for entry in self._entries:
            say = labelled(desk.say, entry.name)
            if entry.trouble:
                say(f"assay: not served: {entry.trouble}")
            elif entry.command and (why := unstartable(entry.command, env=_environ(entry, desk), cwd=entry.cwd)):
                # It is served anyway: once the command is installed, no restart is needed.
                say(f"assay: {why}")
        return {path_of(entry): _hosted(entry, desk) for entry in self._entries}

    def beside(self, backends: Mapping[str, Backend], door: Door) -> Mapping[str, Route]:
        """The list of them, the cards of those at a URL, and who gives out their tokens, where that is not ours."""
        hosted = {path: each for path, each in backends.items() if isinstance(each, Hosted)}
        routes: dict[str, Route] = {"/": index(lambda: [_row(path, each) for path, each in hosted.items()], door)}
        for path, each in hosted.items():
            if each.entry.url:
                routes[CardRoute.path(path)] = _card(each, door)
            if each.entry.url and door.gate is None:
                routes |= _discovery(path, each, door)
        return routes


def path_of(entry: HostedEntry) -> str:
    """Where it is served, as a path that is no longer quoted."""
    return f"/{entry.name}{ENDPOINT}"


def _hosted(entry: HostedEntry, desk: Composition) -> Hosted:
    own = desk.for_server(entry.name)

    def make() -> Backend:
        path = path_of(entry)
        if entry.url:
            headers = [(name.lower().encode(), value.encode()) for name, value in entry.headers]
            return own.proxy(entry.url, headers, path, alone=False)
        return own.children(entry.command, path, _environ(entry, desk), entry.cwd)

    def why_not() -> str:
        return unstartable(entry.command, env=_environ(entry, desk), cwd=entry.cwd) or "" if entry.command else ""

    return Hosted(entry, make, why_not)


def _environ(entry: HostedEntry, desk: Composition) -> dict[str, str]:
    """The environment of a server: ours has the tokens of all the others."""
    return environment(os.environ, desk.settings.guard.environment, entry.env)


def _discovery(path: str, hosted: Hosted, door: Door) -> dict[str, Route]:
    """The documents of a server that is known only once it is asked for."""

    def route(name: str) -> Route:
        async def document(scope: dict[str, Any], receive: Receive, send: Send) -> None:
            proxy = hosted.backend()
            found: Mapping[str, Route] = {}
            if isinstance(proxy, UrlBackend):
                discovery = Discovery(proxy.target, path, door, enforcing=proxy.factory.enforcing)
                found = discovery.routes(alone=False)
            if name in found:
                await found[name](scope, receive, send)
            else:
                await text(send, 404, b"no such server\n")

        return document

    return {name: route(name) for name in Discovery.paths(path)}


def _card(hosted: Hosted, door: Door) -> Route:
    """The card of a server that is known only once it is asked for."""
    known: list[CardRoute] = []

    async def card(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        proxy = hosted.backend()
        if not known and isinstance(proxy, UrlBackend):
            known.append(CardRoute(proxy, door))
        if known:
            await known[0].answer(scope, receive, send)
        else:
            await text(send, 404, b"no such server\n")

    return card


def _row(path: str, hosted: Hosted) -> Row:
    return row(path, hosted.entry.name, hosted, hosted.entry.command, hosted.entry.url)
