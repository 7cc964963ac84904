"""
What the official extensions know of a conversation and of its server, and the checks that need it. No I/O, no clock.

Each extension has modules of its own; the tables at the end say which of them takes which message.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from assay.base.limits import Limits
from assay.base.verdict import Exchange, Party, Violation
from assay.contracts.tool_contracts import Tools
from assay.contracts.tool_pages import page_of, pages_in, with_meta
from assay.core import state_rules
from assay.core.extensions import app_rules, declarations, skill_entries
from assay.core.extensions.app_rules import AppPages
from assay.core.extensions.skill_digests import SkillDigests
from assay.core.extensions.task_states import TaskStates
from assay.core.history import answer_rules
from assay.core.history.reuse import object_of
from assay.core.history.subscriptions import ACKNOWLEDGED, LISTEN
from assay.core.party_state import Side
from assay.engine.budget import Budget
from assay.ladder.protocol import Judge
from assay.rules import violation
from assay.spec.extensions.official import APPS, SKILLS, TASKS, Extension

Found = list[Violation]

_TASK_METHODS: Final = frozenset(each.name for each in TASKS.methods if each.kind == "request")
_TASK_CHANGED: Final = "notifications/tasks"
_SKILL_METHODS: Final = frozenset(each.name for each in SKILLS.methods)
_DIRECTORY: Final = "resources/directory/read"

_ONCE: Final = frozenset(
    {
        "protocol/extension", "protocol/unheard-extension", "extension/identifier", "extension/reserved",
        "extension/settings", "extension/revision",
    }
)  # fmt: skip
"""Rules that are reported once: a party that uses an extension does so with every message."""

_OLD_NOT_FOUND: Final = -32002
"""The code for a missing resource, in revisions with a handshake."""

_MOST_REPORTED: Final = 1000
"""Reports that are remembered. A peer that makes up more names than that gets a report for each of them."""


class ServerExtensions:
    """What extensions know of one server. All conversations with it share this."""

    __slots__ = ("_limits", "_tasks", "goes_beyond", "known_pages", "known_skills", "left_out", "reported")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._tasks: TaskStates | None = None
        self.known_skills: SkillDigests | None = None
        """The files of its skills; None as long as no skills were asked for."""
        self.known_pages: AppPages | None = None
        """The pages of its tools; None as long as no tool has one."""
        self.reported: set[tuple[str, str, str]] = set()
        """The reports that are not repeated: rule, place, and what was found."""
        self.goes_beyond = False
        """Whether the server declared something unknown to any client: it may declare less to another."""
        self.left_out: frozenset[str] = frozenset()
        """The known extensions that the server declared in an unknown revision."""

    @property
    def tasks(self) -> "TaskStates":
        """The tasks of the server."""
        if self._tasks is None:
            self._tasks = TaskStates(self._limits)
        return self._tasks

    @property
    def skills(self) -> "SkillDigests":
        """The files of the skills of the server."""
        if self.known_skills is None:
            self.known_skills = SkillDigests()
        return self.known_skills

    @property
    def pages(self) -> "AppPages":
        """The pages of the tools of the server."""
        if self.known_pages is None:
            self.known_pages = AppPages()
        return self.known_pages


class ExtensionState:
    """The extensions in one conversation."""

    __slots__ = ("_goes_beyond", "_left_out", "_limits", "_sides", "_tools", "plain")

    def __init__(self, sides: Mapping[Party, Side], tools: Tools, limits: Limits) -> None:
        self._sides = sides
        self._tools = tools
        self._limits = limits
        self._goes_beyond = False
        """Whether a request without a handshake declared something unknown, which the server may then use."""
        self._left_out: frozenset[str] = frozenset()
        """The known extensions that a request without a handshake declared in an unknown revision."""
        self.plain: Any = None
        """The last extensions that a request declared and that have no violation: the quick look compares them."""

    @property
    def shared(self) -> ServerExtensions:
        """What conversations with the same server share."""
        if self._tools.beyond is None:
            self._tools.beyond = ServerExtensions(self._limits)
        known: ServerExtensions = self._tools.beyond
        return known

    @property
    def _skills(self) -> "SkillDigests | None":
        """The files of the skills of the server; None as long as none were asked for, or if they are not judged."""
        known: ServerExtensions | None = self._tools.beyond
        skills = None if known is None else known.known_skills
        return None if skills is None or self.leaves_out(SKILLS) else skills

    @property
    def _pages(self) -> "AppPages | None":
        """The pages of the tools of the server; None as long as no tool has one, or if they are not judged."""
        known: ServerExtensions | None = self._tools.beyond
        pages = None if known is None else known.known_pages
        return None if pages is None or self.leaves_out(APPS) else pages

    def use(self, tools: Tools) -> None:
        """Share what is known with conversations about *tools* from now on."""
        self._tools = tools

    def renew(self) -> None:
        """Forget what concerned only the server before."""
        self._tools.beyond = None

    def forget_client(self) -> None:
        """Forget what the requests of a client declared: the next ones come from another."""
        self._goes_beyond = False
        self._left_out = frozenset()

    def once(self, found: Found) -> Found:
        """Return *found* without reports that were made before. A violation that stops its message is always kept."""
        if not any(each.rule in _ONCE for each in found):
            return found
        reported = self.shared.reported
        kept = []
        for each in found:
            key = (each.rule, each.at, each.found)
            if each.rule not in _ONCE or each.stops or key not in reported:
                kept.append(each)
            if each.rule in _ONCE and len(reported) < _MOST_REPORTED:
                reported.add(key)
        return kept

    # ── declarations ─────────────────────────────────────────────────────────────────────────────────────────────────

    def declared(self, party: Party, capabilities: Mapping[str, Any], at: str, judge: Judge, budget: Budget) -> Found:
        """Return the violations of what *party* declares; *at* is the pointer to its capabilities."""
        found = declarations.check(party, capabilities, at, judge, budget)
        beyond = declarations.goes_beyond(capabilities, judge.extensions)
        known = judge.extensions.identifiers
        left_out = {name for name in known if declarations.has_revision(capabilities, known[name])} if beyond else ()
        if party is Party.SERVER and beyond:
            self.shared.goes_beyond = True
            self.shared.left_out = self.shared.left_out.union(left_out)
        if not judge.features.handshake and party is Party.CLIENT:
            self._goes_beyond = self._goes_beyond or beyond
            self._left_out = self._left_out.union(left_out)
            if not found:
                self.plain = capabilities.get(declarations.EXTENSIONS)
        return found

    def goes_beyond(self, judge: Judge, capabilities: Mapping[str, Any] | None = None) -> bool:
        """Return whether either party, or the *capabilities* of a request, declared something unknown."""
        declared = [side.capabilities for side in self._sides.values()]
        shared: ServerExtensions | None = self._tools.beyond
        return (
            self._goes_beyond
            or (shared is not None and shared.goes_beyond)
            or any(declarations.goes_beyond(each, judge.extensions) for each in (*declared, capabilities))
        )

    def leaves_out(self, extension: Extension, capabilities: Mapping[str, Any] | None = None) -> bool:
        """
        Return whether *extension* is not judged, because its revision is unknown.

        Either party may have declared that, or the *capabilities* of a request.
        """
        shared: ServerExtensions | None = self._tools.beyond
        declared = (side.capabilities for side in self._sides.values())
        return (
            extension.identifier in self._left_out
            or (shared is not None and extension.identifier in shared.left_out)
            or any(declarations.has_revision(each, extension) for each in (*declared, capabilities))
        )

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def take_request(self, exchange: Exchange, params: dict[str, Any], found: Found, budget: Budget) -> int:
        """
        Keep what the answer to a request needs, and judge the request by what was declared and by the state.

        Return at least how many violations there are beyond those in *found*.
        """
        extension: Extension | None = exchange.entry.extension
        if extension is not None:
            found += self._check_server(exchange, extension)
        take = _TAKEN.get(exchange.entry.name)
        return 0 if take is None else take(self, exchange, params, found, budget)

    def _check_server(self, exchange: Exchange, extension: Extension) -> Found:
        """Return the violation of using an extension that the server certainly does not have."""
        server = self._sides[Party.SERVER].capabilities
        if declarations.declares(server, extension.identifier) is not False or not extension.identifier:
            return []
        path = f"extensions.{extension.identifier}"
        return [state_rules.lacks("/method", Party.SERVER, path, exchange.revision)]

    def check_result(self, exchange: Exchange, result: dict[str, Any], found: Found, budget: Budget) -> int:
        """
        Judge a result of an extension, or one that an extension adds something to.

        Return at least how many violations there are beyond those in *found*.
        """
        check = _CHECKED.get(exchange.entry.name)
        return 0 if check is None else check(self, exchange, result, found, budget)

    def answered(self, exchange: Exchange, result: dict[str, Any]) -> None:
        """Note that a result was forwarded."""
        learn = _LEARNED.get(exchange.entry.name)
        if learn is not None:
            learn(self, exchange, result)

    def check_error(self, exchange: Exchange, code: int) -> Found:
        """Return the violations of an error, by its code."""
        extension: Extension | None = exchange.entry.extension
        if extension is None:
            pages = self._pages if exchange.beyond is not None else None
            return [] if pages is None else pages.check_error(exchange, code)
        server = self._sides[Party.SERVER].capabilities
        if code == answer_rules.NOT_FOUND and declarations.declares(server, extension.identifier):
            if exchange.method == _DIRECTORY and not self._reads_directories():
                return []
            return [answer_rules.not_implemented(exchange, f"extensions.{extension.identifier}")]
        if extension is SKILLS and code == _OLD_NOT_FOUND and exchange.features.handshake:
            # Without a handshake the code is withdrawn for every method.
            return [answer_rules.not_found(exchange, code)]
        return self.shared.tasks.check_error(exchange, code) if extension is TASKS else []

    def check_note(
        self, method: str, params: dict[str, Any], judge: Judge, declared: frozenset[str] | None
    ) -> list[Violation]:
        """Return the violations of a notification; *declared* are the capabilities of the request that listens."""
        found: Found = []
        if judge.features.handshake or self.leaves_out(TASKS):
            return found
        if method == _TASK_CHANGED:
            self.shared.tasks.check_note(params, judge, declared, found)
        elif method == ACKNOWLEDGED and declared is not None and TASKS.identifier not in declared:
            found += _check_acknowledged(params, judge.revision)
        return found

    def noted(self, method: str, params: Mapping[str, Any]) -> None:
        """Note that a notification was forwarded."""
        note = _NOTED.get(method)
        if note is not None and self._tools.beyond is not None:
            note(self, object_of(params))

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _take_task(self, exchange: Exchange, params: dict[str, Any], found: Found, budget: Budget) -> int:
        return self.shared.tasks.take_request(exchange, params, found, budget) if _is_task(exchange) else 0

    def _take_listen(self, exchange: Exchange, params: dict[str, Any], found: Found, _: Budget) -> int:
        """Judge a request to listen: only a client that declares the extension may ask for notifications on tasks."""
        judge: Judge = exchange.entry.judge
        wanted = params.get("notifications")
        # Where the operator lets unknown methods pass, a client may send it in a revision that does not have it.
        if judge.features.handshake or not isinstance(wanted, dict) or "taskIds" not in wanted:
            return 0
        if self.leaves_out(TASKS):
            return 0
        at = "/params/notifications"
        definition = judge.extension_definition(TASKS, "TaskSubscriptionNotifications")
        faults, more = definition.check("protocol/params", wanted, at, exchange.revision, Budget(b"", 20))
        found += faults
        if TASKS.identifier not in (exchange.declared or ()):
            path = f"extensions.{TASKS.identifier}"
            found.append(state_rules.lacks(f"{at}/taskIds", Party.CLIENT, path, exchange.revision))
        return more

    def _check_task(self, exchange: Exchange, result: dict[str, Any], found: Found, budget: Budget) -> int:
        return self.shared.tasks.check_result(exchange, result, found, budget) if _is_task(exchange) else 0

    def _check_call(self, exchange: Exchange, result: dict[str, Any], found: Found, _: Budget) -> int:
        if _starts_task(exchange, result):
            if not self.leaves_out(TASKS):
                found += self.shared.tasks.check_handle(result, exchange.revision)
        elif exchange.contract is not None and exchange.contract.has_page and _is_whole(exchange, result):
            if self.leaves_out(APPS):
                return 0

            found += app_rules.check_content(result, exchange.revision)
        return 0

    def _learn_task(self, exchange: Exchange, result: dict[str, Any]) -> None:
        if _is_task(exchange):
            self.shared.tasks.answered(exchange, result)

    def _learn_call(self, exchange: Exchange, result: dict[str, Any]) -> None:
        if _starts_task(exchange, result) and not self.leaves_out(TASKS):
            self.shared.tasks.started(exchange, result)

    def _noted_task(self, params: dict[str, Any]) -> None:
        if not self.leaves_out(TASKS):
            self.shared.tasks.noted(params)

    # ── skills ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _take_skill(self, exchange: Exchange, _: dict[str, Any], found: Found, __: Budget) -> int:
        if exchange.entry.extension is not SKILLS:
            return 0
        if exchange.method != _DIRECTORY:
            self.shared.skills.take_request(exchange)
            return 0
        server = self._sides[Party.SERVER].capabilities
        if declarations.declares(server, SKILLS.identifier) and not self._reads_directories():
            path = f"extensions.{SKILLS.identifier}.directoryRead"
            found.append(state_rules.lacks("/method", Party.SERVER, path, exchange.revision))
        return 0

    def _reads_directories(self) -> bool:
        """Return whether the server declares that it lists what is in a directory."""
        server = self._sides[Party.SERVER].capabilities
        return declarations.settings_of(server, SKILLS.identifier).get("directoryRead") is True

    def _check_skills(self, exchange: Exchange, result: dict[str, Any], found: Found, _: Budget) -> int:
        found += skill_entries.check_list(result.get("skills"), exchange.revision)
        return 0

    def _check_skill(self, exchange: Exchange, result: dict[str, Any], found: Found, budget: Budget) -> int:
        return _limited(skill_entries.check(result.get("skill"), "/result/skill", exchange.revision), found, budget)

    def _learn_skills(self, exchange: Exchange, result: dict[str, Any]) -> None:
        if exchange.entry.extension is SKILLS:
            self.shared.skills.learn(exchange, result.get("skills"))

    def _learn_skill(self, exchange: Exchange, result: dict[str, Any]) -> None:
        if exchange.entry.extension is SKILLS:
            self.shared.skills.learn(exchange, [result.get("skill")])

    def _resources_changed(self, _: dict[str, Any]) -> None:
        if self._skills is not None:
            self._skills.changed()

    def _resource_updated(self, params: dict[str, Any]) -> None:
        if self._skills is not None:
            self._skills.changed(params.get("uri"))

    # ── resources and tools ──────────────────────────────────────────────────────────────────────────────────────────

    def _take_read(self, exchange: Exchange, params: dict[str, Any], _: Found, __: Budget) -> int:
        uri = params.get("uri")
        if self._tools.beyond is None or not isinstance(uri, str):
            return 0
        if self._pages is not None:
            self._pages.take_read(exchange, uri)
        if self._skills is not None:
            self._skills.take_read(exchange, uri)
        return 0

    def _check_read(self, exchange: Exchange, result: dict[str, Any], found: Found, budget: Budget) -> int:
        more = 0
        pages = pages_in(result.get("contents"))
        if pages and not self.leaves_out(APPS):
            more += _limited(app_rules.check_contents(pages, exchange.entry.judge, budget), found, budget)
        if self._skills is not None and exchange.beyond is not None:
            more += _limited(self._skills.check_read(exchange, result), found, budget)
        return more

    def _check_resources(self, exchange: Exchange, result: dict[str, Any], found: Found, budget: Budget) -> int:
        pages = pages_in(result.get("resources"))
        if not pages or self.leaves_out(APPS):
            return 0

        return _limited(app_rules.check_resources(pages, exchange.entry.judge, budget), found, budget)

    def _check_tools(self, exchange: Exchange, result: dict[str, Any], found: Found, budget: Budget) -> int:
        tools = with_meta(result.get("tools"))
        if not tools or self.leaves_out(APPS):
            return 0

        return _limited(app_rules.check_tools(tools, exchange.entry.judge, budget), found, budget)

    def _learn_tools(self, exchange: Exchange, result: dict[str, Any]) -> None:
        uris = [page_of(tool) for _, tool in with_meta(result.get("tools"))]
        pages = [uri for uri in uris if uri is not None]
        if self._pages is not None or (pages and not self.leaves_out(APPS)):
            self.shared.pages.learn(pages, first=exchange.detail is None)

    def _tools_changed(self, _: dict[str, Any]) -> None:
        if self._pages is not None:
            self._pages.changed()


def _limited(faults: Iterator[Violation], found: Found, budget: Budget) -> int:
    """Add *faults* to *found*, as many as are listed. Return at least how many more there are."""
    found += islice(faults, budget.violations)
    return 0 if next(faults, None) is None else 1


def _check_acknowledged(params: Mapping[str, Any], revision: str) -> Found:
    """Return the violation of a server that agrees to report on tasks to a client that did not declare them."""
    agreed = params.get("notifications")
    if not isinstance(agreed, dict) or not agreed.get("taskIds"):
        return []
    expected = f"-32021, because {LISTEN} did not declare the extension"
    at = "/params/notifications/taskIds"
    return [violation("tasks/undeclared", at, expected=expected, found="an acknowledgement", revision=revision)]


def _is_task(exchange: Exchange) -> bool:
    """Return whether a request about a task is that of the extension, and not of the revision before it."""
    return exchange.entry.extension is TASKS


def _is_whole(exchange: Exchange, result: Mapping[str, Any]) -> bool:
    """Return whether *result* is that of the call itself: it may ask for input first, or be a task."""
    return not exchange.as_task and result.get("resultType", "complete") == "complete"


def _starts_task(exchange: Exchange, result: Mapping[str, Any]) -> bool:
    return exchange.features.result_types and result.get("resultType") == TASKS.results[0].kind


# Functions, not bound methods: those would keep an ended conversation and its tools in a reference cycle.
Take = Callable[[ExtensionState, Exchange, dict[str, Any], Found, Budget], int]
Learn = Callable[[ExtensionState, Exchange, dict[str, Any]], None]

_TAKEN: Final[Mapping[str, Take]] = {
    **dict.fromkeys(_TASK_METHODS, ExtensionState._take_task),
    **dict.fromkeys(_SKILL_METHODS, ExtensionState._take_skill),
    LISTEN: ExtensionState._take_listen,
    "resources/read": ExtensionState._take_read,
}
_CHECKED: Final[Mapping[str, Take]] = {
    **dict.fromkeys(_TASK_METHODS, ExtensionState._check_task),
    "tools/call": ExtensionState._check_call,
    "tools/list": ExtensionState._check_tools,
    "resources/list": ExtensionState._check_resources,
    "resources/read": ExtensionState._check_read,
    "skills/list": ExtensionState._check_skills,
    "skills/get": ExtensionState._check_skill,
}
_LEARNED: Final[Mapping[str, Learn]] = {
    **dict.fromkeys(_TASK_METHODS, ExtensionState._learn_task),
    "tools/call": ExtensionState._learn_call,
    "tools/list": ExtensionState._learn_tools,
    "skills/list": ExtensionState._learn_skills,
    "skills/get": ExtensionState._learn_skill,
}
"""What is done with a request, with its result, and once that was forwarded, by the method."""

_NOTED: Final[Mapping[str, Callable[[ExtensionState, dict[str, Any]], None]]] = {
    _TASK_CHANGED: ExtensionState._noted_task,
    "notifications/resources/list_changed": ExtensionState._resources_changed,
    "notifications/resources/updated": ExtensionState._resource_updated,
    "notifications/tools/list_changed": ExtensionState._tools_changed,
}
"""What is done once a notification of the server was forwarded, by its method."""
