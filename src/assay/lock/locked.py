"""What a server offered when it was reviewed. No I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

from assay.judge.masking import masked_command, masked_url
from assay.model.printable import counted
from assay.schema.tool_contract import Contract
from assay.schema.tool_contracts import ToolList
from assay.spec.revisions import features_of


class EntryKind(NamedTuple):
    """A kind of entry that a server offers."""

    noun: str
    method: str
    member: str
    """The member that lists them, in a result of *method* and in a lock."""
    key: str
    """The member of a definition that identifies it."""
    definition: str
    """Its definition in the protocol's schema."""


KINDS: Final = (
    EntryKind("tool", "tools/list", "tools", "name", "Tool"),
    EntryKind("resource template", "resources/templates/list", "resourceTemplates", "uriTemplate", "ResourceTemplate"),
    EntryKind("prompt", "prompts/list", "prompts", "name", "Prompt"),
)
BY_METHOD: Final = {kind.method: kind for kind in KINDS}

Accepted = tuple[dict[str, Any], ...]
"""The accepted definitions of one entry: two if the server gives its two kinds of clients different ones."""

BARE: Final = "without capabilities"
CAPABLE: Final = "with capabilities"
CLIENTS: Final = (BARE, CAPABLE)
"""The two kinds of clients that a server may treat differently."""

_MOST_NAMES: Final = 20
"""Names that are listed on one line."""


@dataclass(frozen=True)
class Locked:
    """One locked server."""

    command: tuple[str, ...] = ()
    url: str = ""
    """How it is reached: a command or a URL. Read from a file, secrets are masked."""
    revision: str = ""
    """The revision of the conversation in which it was locked."""
    server: Mapping[str, str] = field(default_factory=dict)
    """Its own name and version, if it has them."""
    instructions: tuple[str | None, ...] = (None,)
    """The accepted instructions for a model, one or two; None stands for no instructions."""
    listed: Mapping[str, Mapping[str, Accepted]] = field(default_factory=dict)
    """What it offers by name or URI template, by the member that lists it: tools, resourceTemplates, prompts."""
    only_for: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The names that only one kind of clients gets, and that kind, one of `CLIENTS`; by the same members."""
    unasked: str = ""
    """The kind of clients for which the server failed, so that its offer to them is unknown; "" for none."""

    def of(self, kind: EntryKind) -> Mapping[str, Accepted]:
        """Return the entries of one kind."""
        return self.listed.get(kind.member, {})

    def clients_of(self, kind: EntryKind) -> Mapping[str, str]:
        """Return the names of one kind that only one kind of clients gets."""
        return self.only_for.get(kind.member, {})

    def is_reached_by(self, command: tuple[str, ...], url: str) -> bool:
        """Whether this is the server of that command or URL; secrets are not compared."""
        if (self.command, self.url) == (command, url):
            return True
        if len(self.command) != len(command) or bool(self.url) != bool(url):
            return False
        return (masked_command(self.command), masked_url(self.url)) == (masked_command(command), masked_url(url))

    @cached_property
    def texts(self) -> Mapping[str, Mapping[str, tuple[bytes, ...]]]:
        """The definitions as bytes, for a quick comparison: equal bytes are equal definitions."""
        return {
            kind.member: {name: tuple(map(spelt, accepted)) for name, accepted in self.of(kind).items()}
            for kind in KINDS
        }

    @cached_property
    def contracts(self) -> ToolList:
        """The contracts of its tools, except those that differ from client to client."""
        outputs = features_of(self.revision).output_schemas
        tools = self.listed.get("tools", {})
        contracts = {name: Contract(each[0], outputs=outputs) for name, each in tools.items() if len(each) == 1}
        return ToolList(contracts)

    def counts(self) -> str:
        """Return how many entries of each kind it offers, in words."""
        some = [counted(len(self.of(kind)), kind.noun) for kind in KINDS if self.of(kind)]
        return ", ".join(some) or "nothing at all"

    def notes(self) -> Iterator[str]:
        """Yield a line about each difference between what the two kinds of clients get."""
        if self.unasked:
            yield f"what clients {self.unasked} get is not locked: the server failed for such a client"
        for kind in KINDS:
            for clients in CLIENTS:
                names = sorted(name for name, only in self.clients_of(kind).items() if only == clients)
                if names:
                    yield f"only for clients {clients}: {_listed(kind, names)}"
            several = sorted(name for name, accepted in self.of(kind).items() if len(accepted) > 1)
            if several:
                yield f"other definitions for clients {CAPABLE}: {_listed(kind, several)}"
        if len(self.instructions) > 1:
            yield f"other instructions for clients {CAPABLE}"


def spelt(definition: Any) -> bytes:
    """Return a definition as bytes; the order of its keys does not matter."""
    return orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)


def _listed(kind: EntryKind, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{counted(len(names), kind.noun)} ({shown}{', …' if len(names) > _MOST_NAMES else ''})"
