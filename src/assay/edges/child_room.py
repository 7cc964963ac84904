"""Make room for a new child at the limit: end the longest idle one, with its sessions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from assay.edges.child_pipe import ChildPipe
from assay.edges.http.quotas import Full, Idleness, Quota, to_end

SECONDS: Final = 5.0
"""Seconds that a new session waits for a free place: a child that has to be killed ends within half of that."""


class Tenant(NamedTuple):
    """A child of one session, or of several that share it."""

    principal: str
    idleness: Idleness
    end: Callable[[], Awaitable[None]]
    """End its sessions and the child, and wait until it has ended."""


class ChildRoom:
    """The limit of children of sessions."""

    def __init__(self, quota: Quota, tenants: Callable[[], Iterable[Tenant]]) -> None:
        """*tenants* returns the running children that count for *quota*, the least recently used first."""
        self._quota = quota
        self._tenants = tenants
        self._owners: dict[ChildPipe, str] = {}
        self._ending: set[ChildPipe] = set()

    def take(self, pipe: ChildPipe, principal: str) -> None:
        """Count a new child of *principal* until it has ended."""
        self._quota.take(principal)
        self._owners[pipe] = principal
        pipe.when_over(lambda: self._give_back(pipe))

    def _give_back(self, pipe: ChildPipe) -> None:
        self._ending.discard(pipe)
        self._quota.give_back(self._owners.pop(pipe))

    def ends(self, pipe: ChildPipe) -> None:
        """Note that a child is ending, which frees its place."""
        if pipe in self._owners:
            self._ending.add(pipe)

    async def make(self, principal: str) -> Full | None:
        """
        Wait until *principal* may start one more child; return the reached limit if it may not.

        A child that is ending still takes memory, so it counts until it has ended.
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
    """Wait until one of *pipes* has ended."""
    over = asyncio.Event()
    for pipe in pipes:
        pipe.when_over(over.set)
    await over.wait()
