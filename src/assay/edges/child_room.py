"""Room for one more child, where as many run as may: the one that was idle longest ends for it, with its sessions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from assay.edges.child_pipe import ChildPipe
from assay.edges.http.idleness import Idleness, to_end
from assay.edges.http.quotas import Full, Quota

SECONDS: Final = 5.0
"""How long a new session waits for a place: a child that has to be killed ends within half of that."""


class Tenant(NamedTuple):
    """A child that runs for one session, or for those that share it."""

    principal: str
    idleness: Idleness
    end: Callable[[], Awaitable[None]]
    """Ends its sessions and the child, and waits until nothing is left of it."""


class ChildRoom:
    """The places for children of sessions."""

    def __init__(self, quota: Quota, tenants: Callable[[], Iterable[Tenant]]) -> None:
        """*tenants* gives those who have a place of *quota* now, the one used longest ago first."""
        self._quota = quota
        self._tenants = tenants
        self._owners: dict[ChildPipe, str] = {}
        self._ending: set[ChildPipe] = set()

    def take(self, pipe: ChildPipe, principal: str) -> None:
        """A child of *principal* runs, and has its place until nothing is left of it."""
        self._quota.take(principal)
        self._owners[pipe] = principal
        pipe.when_over(lambda: self._give_back(pipe))

    def _give_back(self, pipe: ChildPipe) -> None:
        self._ending.discard(pipe)
        self._quota.give_back(self._owners.pop(pipe))

    def ends(self, pipe: ChildPipe) -> None:
        """A child is about to end, which gives its place back."""
        if pipe in self._owners:
            self._ending.add(pipe)

    async def make(self, principal: str) -> Full | None:
        """
        Wait until *principal* may start one child more; return why it may not.

        Children that end still take memory, so their places count until they have ended.
        """
        try:
            async with asyncio.timeout(SECONDS):
                while (full := self._quota.full(principal)) is not None:
                    own = self._quota.has_share(principal)
                    tenant = to_end(self._tenants(), lambda each: each.idleness, principal, own_only=own)
                    ending = [each for each in self._ending if not own or self._owners[each] == principal]
                    if tenant is not None:
                        await tenant.end()
                    elif ending:
                        await _one_over(ending)
                    else:
                        return full
        except TimeoutError:
            return self._quota.full(principal)
        return None


async def _one_over(pipes: Iterable[ChildPipe]) -> None:
    """Waits until nothing is left of one of *pipes*."""
    over = asyncio.Event()
    for pipe in pipes:
        pipe.when_over(over.set)
    await over.wait()
