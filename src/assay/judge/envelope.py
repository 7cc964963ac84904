"""
The third rung: from a JSON value to a JSON-RPC message, by the profile in force. No methods of MCP, no I/O.

`classify` is the fast way for valid messages; `check` lists every fault of the others.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple
from uuid import UUID

from assay.model.limits import DEFAULT
from assay.model.verdict import Kind, Violation
from assay.rules import violation
from assay.schema.look_alikes import Keys
from assay.schema.wording import found as found_words


class Profile(NamedTuple):
    """The rules for an envelope. There is one pipeline with one setting."""

    name: Literal["jsonrpc", "mcp", "strict"]
    id_types: tuple[type, ...]
    """The types of an id; bool is excluded, although it is a number in Python."""
    array_params: bool
    params_required: bool
    batches: bool
    """Whether batches may be sent; under ``mcp`` only if the revision has them."""
    id_words: str
    uuid_ids: bool = False
    """Whether a string is an id only if it is a UUID."""

    @property
    def any_result(self) -> bool:
        """Whether a result may be something else than an object."""
        return self.name == "jsonrpc"


JSONRPC = Profile("jsonrpc", (str, int, float, type(None)), True, False, True, "a string, a number or null")
"""Plain JSON-RPC 2.0, as in specs/002."""

MCP = Profile("mcp", (str, int), False, False, True, "a string or an integer")
"""The rules of the official schema and of specs/003."""

STRICT = Profile("strict", (str,), False, True, False, "a string")
"""The envelope of specs/000."""

STRICT_UUID = STRICT._replace(uuid_ids=True, id_words="a UUID")
"""The same, with deterministic ids."""

PROFILES = {profile.name: profile for profile in (JSONRPC, MCP, STRICT)}

_ABSENT: Any = object()

_KEYS = Keys(("jsonrpc", "id", "method", "params", "result", "error"))
_ERROR_KEYS = Keys(("code", "message", "data"))
_LOOK_ALIKE = "envelope/look-alike-key"

_NUMBERED = "Use a counter or a UUID string as the id."
_NO_ID = "Remove the id: a notification has no id and is never answered."
_ECHOED = "Echo the id of the request unchanged."


def classify(value: Any, profile: Profile = MCP, id_limit: int = DEFAULT.id_bytes) -> Kind | None:
    """Return the kind of a well-formed message of the common shape; None for any other, which `check` judges."""
    if type(value) is not dict or value.get("jsonrpc") != "2.0":
        return None
    ident = value.get("id", _ABSENT)
    if ident is not _ABSENT and type(ident) is not int and (type(ident) is not str or len(ident) > id_limit):
        return None
    if profile is not MCP:
        return None
    method = value.get("method")
    if method is None:
        plain = type(value.get("result")) is dict and ident is not _ABSENT
        # There are no other members, which could look like one of these.
        return "result" if plain and len(value) == 3 else None
    if type(method) is not str or not method:
        return None
    params = value.get("params", _ABSENT)
    if params is not _ABSENT and type(params) is not dict:
        return None
    if len(value) != 2 + (ident is not _ABSENT) + (params is not _ABSENT):
        return None
    return "notification" if ident is _ABSENT else "request"


def kind_of(value: Any) -> Kind:
    """Return the likely kind of *value*, by its members."""
    if not isinstance(value, dict):
        return "batch" if isinstance(value, list) else "unreadable"
    if "method" in value:
        return "request" if "id" in value else "notification"
    if "error" in value:
        return "error"
    return "result" if "result" in value else "unreadable"


def check(
    value: Any, profile: Profile = MCP, *, id_limit: int = DEFAULT.id_bytes, error_id: bool = True
) -> Iterator[Violation]:
    """
    Yield every fault of *value* as one message (not a batch).

    *error_id* means that an error must have an id: from 2025-11-25 on an error about an unreadable request has none.
    """
    if isinstance(value, dict) and "method" in value:
        yield from check_call(value, profile, id_limit=id_limit)
    else:
        yield from check_answer(value, profile, id_limit=id_limit, error_id=error_id)


def check_call(
    value: Any, profile: Profile, *, id_limit: int = DEFAULT.id_bytes, needs_id: bool = False
) -> Iterator[Violation]:
    """Yield every fault of *value* as a request or, unless *needs_id*, as a notification."""
    yield from _check_head(value)
    if not isinstance(value, dict):
        return
    method = value.get("method", _ABSENT)
    if not isinstance(method, str) or not method:
        yield _member(value, "method", "a non-empty string")
    for extra in ("result", "error"):
        if extra in value:
            found = f"a method and {'an' if extra == 'error' else 'a'} {extra}"
            yield violation("envelope/members", f"/{extra}", expected="a method alone", found=found)
    if "id" in value:
        faults = _check_id(value, profile, id_limit)
        if isinstance(method, str) and method.startswith("notifications/"):
            yield from (replace(each, expected="no id in a notification", hint=_NO_ID) for each in faults)
        else:
            yield from (replace(each, hint=_NUMBERED) for each in faults)
    elif needs_id:
        yield _member(value, "id", profile.id_words)
    if "params" in value or (profile.params_required and ("id" in value or needs_id)):
        params = value.get("params")
        if not isinstance(params, dict) and not (profile.array_params and isinstance(params, list)):
            yield _member(value, "params", "an object or an array" if profile.array_params else "an object")


def check_answer(
    value: Any, profile: Profile, *, id_limit: int = DEFAULT.id_bytes, error_id: bool = True
) -> Iterator[Violation]:
    """Yield every fault of *value* as a result or an error."""
    yield from _check_head(value)
    if not isinstance(value, dict):
        return
    if "result" in value and "error" in value:
        yield violation("envelope/members", "/error", expected="a result or an error", found="a result and an error")
    elif "result" not in value and "error" not in value:
        yield violation(
            "envelope/members",
            expected="a method, a result or an error",
            found=found_words(value),
            hint="Add the missing member; write logs to stderr, not among the messages.",
        )
    if "error" in value:
        yield from _check_error(value["error"])
    elif "result" in value and not profile.any_result and not isinstance(value["result"], dict):
        yield _member(value, "result", "an object")
    if "id" in value:
        yield from (replace(each, hint=_ECHOED) for each in _check_id(value, profile, id_limit))
    elif error_id or "error" not in value:
        yield replace(_member(value, "id", profile.id_words), hint=_ECHOED)


def _check_head(value: Any) -> Iterator[Violation]:
    """Yield the faults that calls and answers have in common."""
    if not isinstance(value, dict):
        yield violation("envelope/message", expected="an object", found=found_words(value))
        return
    if value.get("jsonrpc") != "2.0":
        yield _member(value, "jsonrpc", '"2.0"')
    yield from _KEYS.check(_LOOK_ALIKE, value, "", DEFAULT.violations, None)


def _check_error(error: Any) -> Iterator[Violation]:
    if not isinstance(error, dict):
        yield violation("envelope/error", "/error", expected="an object", found=found_words(error))
        return
    yield from _ERROR_KEYS.check(_LOOK_ALIKE, error, "/error", DEFAULT.violations, None)
    code, message = error.get("code", _ABSENT), error.get("message", _ABSENT)
    if type(code) is not int and not (type(code) is float and code.is_integer()):
        yield _part_of_error("code", code, "an integer")
    if not isinstance(message, str):
        yield _part_of_error("message", message, "a string")


def _check_id(value: dict[str, Any], profile: Profile, id_limit: int) -> Iterator[Violation]:
    ident = value["id"]
    whole = type(ident) is float and int in profile.id_types and ident.is_integer()
    if type(ident) not in profile.id_types and not whole:
        yield _member(value, "id", profile.id_words)
    elif isinstance(ident, str) and len(ident) > id_limit:
        yield violation(
            "envelope/id", "/id", expected=f"at most {id_limit:,} characters", found=f"{len(ident):,} characters"
        )
    elif profile.uuid_ids and not _is_uuid(ident):
        yield _member(value, "id", profile.id_words)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _member(value: dict[str, Any], name: str, expected: str) -> Violation:
    if name in value:
        return violation(f"envelope/{name}", f"/{name}", expected=expected, found=found_words(value[name]))
    return violation(f"envelope/{name}", expected=f"the member {name}, {expected}", found="nothing")


def _part_of_error(name: str, part: Any, expected: str) -> Violation:
    if part is _ABSENT:
        return violation("envelope/error", "/error", expected=f"{name}, {expected}", found="nothing")
    return violation("envelope/error", f"/error/{name}", expected=expected, found=found_words(part))
