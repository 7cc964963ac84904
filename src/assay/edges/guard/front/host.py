"""
A host: every server of a client's configuration, each at a path of its own, each started when it is first asked.

What is wrong with one is told to those who ask it, and to nobody else.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from assay.clients.environment import environment
from assay.clients.hosting import Entry
from assay.edges.child import unstartable
from assay.edges.guard.front.guarded import Backend, Request, failure
from assay.edges.guard.front.guarding import Desk
from assay.edges.guard.http_to_http.oauth import Discovery
from assay.edges.guard.http_to_http.proxy import Proxy
from assay.edges.http.asking import ENDPOINT, headers_of
from assay.edges.http.door import Door
from assay.edges.http.replies import Receive, Route, Send, reads, reply, shared, text
from assay.settings import SettingsError


class Hosted:
    """One server of the host."""

    def __init__(self, entry: Entry, make: Callable[[], Backend]) -> None:
        """*make* makes what answers for it; it may raise `ValueError` or `OSError`, which is then told."""
        self.entry = entry
        self.trouble = entry.trouble
        """Why it does not answer, if it does not."""
        self._make = make
        self._backend: Backend | None = None
        self._stopping = False

    @property
    def state(self) -> str:
        """For people, in a word."""
        if self.trouble:
            return "failed"
        return "idle" if self._backend is None else "running"

    @property
    def sessions(self) -> int:
        """How many it has."""
        return getattr(self._backend, "sessions", 0)

    def backend(self) -> Backend | None:
        """What answers for it, made when it is first asked for; None if there is some trouble."""
        if self._backend is None and not self.entry.trouble:
            try:
                self._backend = self._make()
                self.trouble = ""
            except (ValueError, OSError, ImportError, SettingsError) as error:
                self.trouble = str(error) or type(error).__name__
        return self._backend

    async def answer(self, request: Request, receive: Receive, send: Send) -> None:
        """Answers *request*, or says why nobody can."""
        backend = self.backend()
        if backend is not None:
            await backend.answer(request, receive, send)
            return
        status, content = failure(request, "UPSTREAM_FAILURE", f"the server cannot be reached: {self.trouble}")
        await reply(send, status, content, shared(request.headers))

    def sweep(self) -> None:
        """Has it drop what nobody uses."""
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

    def __init__(self, file: str, entries: Sequence[Entry]) -> None:
        self._file = file
        self._entries = entries

    @property
    def what(self) -> str:
        """How many servers of which file; those that are not served do not count."""
        count = sum(not entry.trouble for entry in self._entries)
        return f"{count} server{'' if count == 1 else 's'} of {self._file}"

    def backends(self, desk: Desk) -> Mapping[str, Backend]:
        """Each at ``/<name>/mcp``."""
        for entry in self._entries:
            if entry.trouble:
                desk.say(f"assay: {entry.name!r} of {self._file} is not served: {entry.trouble}")
            elif entry.command and (why := unstartable(entry.command, env=_environ(entry, desk), cwd=entry.cwd)):
                # It is served all the same: whoever installs it now need not start us again.
                desk.say(f"assay: {entry.name!r} of {self._file} does not work yet: {why}")
        return {path_of(entry): _hosted(entry, desk) for entry in self._entries}

    def beside(self, backends: Mapping[str, Backend], door: Door) -> Mapping[str, Route]:
        """The list of them, and who gives out tokens for those at a URL, where that is not ours to say."""
        hosted = {path: each for path, each in backends.items() if isinstance(each, Hosted)}
        routes: dict[str, Route] = {"/": _index(hosted, door)}
        for path, each in hosted.items():
            if each.entry.url and door.gate is None:
                routes |= _discovery(path, each, door)
        return routes


def path_of(entry: Entry) -> str:
    """Where it is served, as a path that is no longer quoted."""
    return f"/{entry.name}{ENDPOINT}"


def _hosted(entry: Entry, desk: Desk) -> Hosted:
    def make() -> Backend:
        path = path_of(entry)
        if entry.url:
            headers = [(name.lower().encode(), value.encode()) for name, value in entry.headers]
            return desk.proxy(entry.name, entry.url, headers, path, alone=False)
        return desk.children(entry.name, entry.command, path, _environ(entry, desk), entry.cwd)

    return Hosted(entry, make)


def _environ(entry: Entry, desk: Desk) -> dict[str, str]:
    """The environment of a server: ours has the tokens of all the others."""
    return environment(os.environ, desk.settings.guard.environment, entry.env)


def _discovery(path: str, hosted: Hosted, door: Door) -> dict[str, Route]:
    """The documents of a server that is known only once it is asked for."""

    def route(name: str) -> Route:
        async def document(scope: dict[str, Any], receive: Receive, send: Send) -> None:
            proxy = hosted.backend()
            found: Mapping[str, Route] = {}
            if isinstance(proxy, Proxy):
                discovery = Discovery(proxy.target, path, door, enforcing=proxy.oversight.enforcing)
                found = discovery.routes(alone=False)
            if name in found:
                await found[name](scope, receive, send)
            else:
                await text(send, 404, b"no such server\n")

        return document

    return {name: route(name) for name in Discovery.paths(path)}


def _index(hosted: Mapping[str, Hosted], door: Door) -> Route:
    """A list of the servers, for people and for programs."""

    async def index(scope: dict[str, Any], _: Receive, send: Send) -> None:
        headers = headers_of(scope)
        if not await reads(scope, send) or await door.admitted(scope, headers, send) is None:
            return
        rows = [_row(path, each) for path, each in hosted.items()]
        if b"application/json" in headers.get(b"accept", b""):
            await reply(send, 200, orjson.dumps({"servers": rows}), shared(headers))
            return
        lines = ["  ".join(filter(None, (f"{row['state']:<7}", row["path"], row["why"]))) for row in rows]
        await text(send, 200, "".join(f"{line}\n" for line in lines).encode(errors="replace"))

    return index


def _row(path: str, hosted: Hosted) -> dict[str, str]:
    """What is shown of a server: nothing that could be a secret."""
    entry = hosted.entry
    server = urlsplit(entry.url).hostname or "" if entry.url else "".join(entry.command[:1])
    return {"name": entry.name, "path": quote(path), "server": server, "state": hosted.state, "why": hosted.trouble}
