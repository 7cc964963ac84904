"""
The method table: which party may send which method in which revision, its definition, and that of its result.

One literal table; a test proves that the unions ``ClientRequest``, ``ServerNotification`` … of the facts are equal.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from assay.spec.revisions import REVISIONS, position
from assay.spec.schema import closest

PartyName = Literal["client", "server"]
Kind = Literal["request", "notification"]


class Capability(NamedTuple):  # not a dataclass: each takes a millisecond to create, at every start-up
    """A capability that must be declared before a method may be used."""

    party: Literal["client", "server", "receiver", "sender"]
    """The party that must declare it; *receiver* or *sender* of the message if both parties may send it."""
    path: str
    """Its path in that party's capabilities: ``tools``, ``resources.subscribe``."""


class Method(NamedTuple):
    """One method as it is in some revisions."""

    name: str
    kind: Kind
    senders: tuple[PartyName, ...]
    revisions: tuple[str, ...]
    definition: str
    """The definition of the whole message; up to 2025-06-18 without the JSON-RPC head."""
    result: str | None
    """The definition of the result that answers it; None for a notification."""
    capability: Capability | None
    params: str | None = None
    """The definition of its params, if that of the message has less than is required."""

    def needs(self, sender: PartyName) -> tuple[PartyName, str] | None:
        """Return the party and the capability that it must have declared for *sender* to send this, if any."""
        if self.capability is None:
            return None
        party = self.capability.party
        if party == "sender":
            return sender, self.capability.path
        if party == "receiver":
            return ("server" if sender == "client" else "client"), self.capability.path
        return party, self.capability.path


# One row each: revisions (numbered in date order, as in facts.txt), the sender, the method, its definition, that of its
# result, and the capability that it needs as "party path". A method has two rows if revisions differ.
_TABLE: Final = """
1-4  client  initialize                            InitializeRequest                      InitializeResult
1-4  both    ping                                  PingRequest                            EmptyResult
5-5  client  server/discover                       DiscoverRequest                        DiscoverResult
1-5  client  tools/list                            ListToolsRequest                       ListToolsResult              server tools
1-5  client  tools/call                            CallToolRequest                        CallToolResult               server tools
1-5  client  resources/list                        ListResourcesRequest                   ListResourcesResult          server resources
1-5  client  resources/templates/list              ListResourceTemplatesRequest           ListResourceTemplatesResult  server resources
1-5  client  resources/read                        ReadResourceRequest                    ReadResourceResult           server resources
1-4  client  resources/subscribe                   SubscribeRequest                       EmptyResult                  server resources.subscribe
1-4  client  resources/unsubscribe                 UnsubscribeRequest                     EmptyResult                  server resources.subscribe
5-5  client  subscriptions/listen                  SubscriptionsListenRequest             SubscriptionsListenResult
1-5  client  prompts/list                          ListPromptsRequest                     ListPromptsResult            server prompts
1-5  client  prompts/get                           GetPromptRequest                       GetPromptResult              server prompts
1-1  client  completion/complete                   CompleteRequest                        CompleteResult
2-5  client  completion/complete                   CompleteRequest                        CompleteResult               server completions
1-4  client  logging/setLevel                      SetLevelRequest                        EmptyResult                  server logging
1-4  server  roots/list                            ListRootsRequest                       ListRootsResult              client roots
1-4  server  sampling/createMessage                CreateMessageRequest                   CreateMessageResult          client sampling
3-4  server  elicitation/create                    ElicitRequest                          ElicitResult                 client elicitation
4-4  both    tasks/get                             GetTaskRequest                         GetTaskResult                receiver tasks
4-4  both    tasks/result                          GetTaskPayloadRequest                  GetTaskPayloadResult         receiver tasks
4-4  both    tasks/cancel                          CancelTaskRequest                      CancelTaskResult             receiver tasks.cancel
4-4  both    tasks/list                            ListTasksRequest                       ListTasksResult              receiver tasks.list
1-4  client  notifications/initialized             InitializedNotification                -
1-5  both    notifications/cancelled               CancelledNotification                  -
1-4  both    notifications/progress                ProgressNotification                   -
5-5  server  notifications/progress                ProgressNotification                   -
1-4  client  notifications/roots/list_changed      RootsListChangedNotification           -                            client roots.listChanged
1-5  server  notifications/message                 LoggingMessageNotification             -                            server logging
1-5  server  notifications/tools/list_changed      ToolListChangedNotification            -                            server tools.listChanged
1-5  server  notifications/prompts/list_changed    PromptListChangedNotification          -                            server prompts.listChanged
1-5  server  notifications/resources/list_changed  ResourceListChangedNotification        -                            server resources.listChanged
1-5  server  notifications/resources/updated       ResourceUpdatedNotification            -                            server resources.subscribe
5-5  server  notifications/subscriptions/acknowledged  SubscriptionsAcknowledgedNotification  -
4-4  server  notifications/elicitation/complete    ElicitationCompleteNotification        -                            client elicitation
4-4  both    notifications/tasks/status            TaskStatusNotification                 -                            sender tasks
"""  # noqa: E501 - a table is read across


@cache
def methods(revision: str) -> Mapping[str, Method]:
    """Return every method of *revision* by name; ValueError for an unknown revision."""
    position(revision)
    return MappingProxyType({method.name: method for method in _methods() if revision in method.revisions})


def revisions_of(method: str) -> tuple[str, ...]:
    """Return the revisions that have *method*, oldest first; () for an unknown name."""
    return tuple(revision for revision in REVISIONS if method in methods(revision))


_LIKE: Final = 0.8
"""How close a name must be to a method to count as a misspelling: ``tool/call`` is, ``tools/run`` is not."""


def method_meant(name: str, revision: str) -> str | None:
    """Return the method of *revision* that *name* likely misspells; None without one."""
    # Only names that begin alike are compared: a peer may send only misspelled names, and each takes 20 µs.
    near = [each for each in methods(revision) if each[:3] == name[:3].lower() and abs(len(each) - len(name)) <= 3]
    if not near:
        return None

    return next(iter(closest(name, near, _LIKE)), None)


@cache
def _methods() -> tuple[Method, ...]:
    return tuple(_method(row.split()) for row in _TABLE.strip().splitlines())


_SENDERS: Final[Mapping[str, tuple[PartyName, ...]]] = {
    "client": ("client",),
    "server": ("server",),
    "both": ("client", "server"),
}


def extension_method(text: str) -> Method:
    """Return the method in a row of the table of an extension; the definition of its params may be at the end."""
    row = text.split()
    return _method(row[:5])._replace(params=row[5] if len(row) > 5 else None)


def _method(row: list[str]) -> Method:
    first, last = int(row[0][0]), int(row[0][2])
    return Method(
        name=row[2],
        kind="notification" if row[4] == "-" else "request",
        senders=_SENDERS[row[1]],
        revisions=REVISIONS[first - 1 : last],
        definition=row[3],
        result=None if row[4] == "-" else row[4],
        capability=Capability(row[5], row[6]) if len(row) > 5 else None,  # type: ignore[arg-type]  # a test reads them all
    )
