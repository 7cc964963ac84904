"""
What the official conformance suite looks for in a server: tools, prompts and resources, as tables.

The tables hold what goes over the wire, as it goes; the SDK's own models are used only where it takes nothing else.
Nothing here knows how it is served: `fixture_server.py` does.
"""

import asyncio
import base64
import io
import json
import re
import struct
import wave
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

mcp_types: Any = import_module("mcp_types")
subscriptions: Any = import_module("mcp.server.subscriptions")
exceptions: Any = import_module("mcp.shared.exceptions")
message: Any = import_module("mcp.shared.message")
version: Any = import_module("mcp_types.version")

NAME = "conformance-fixtures"

PAUSE_SECONDS = 0.05
"""Between two things that a client should see happen one after the other; the suite asks for as much."""

JSON = dict[str, Any]
Content = JSON
Answers = JSON
"""What the client has answered, by the key of the request."""


class Call(NamedTuple):
    """One `tools/call` or `prompts/get`: its context in the SDK, and its arguments."""

    ctx: Any
    arguments: JSON


Act = Callable[[Call], Awaitable[Sequence[Content]]]
"""What a tool or a prompt does. A tool returns it as its content, a prompt as the messages of a user."""

Round = Mapping[str, JSON] | Callable[[JSON], Mapping[str, JSON]]
"""What to ask the client at a time, by key; or what makes that of the arguments of the call."""

NO_ARGUMENTS: JSON = {"type": "object", "additionalProperties": False}


class Tool(NamedTuple):
    about: str
    act: Act
    schema: JSON = NO_ARGUMENTS


class Prompt(NamedTuple):
    about: str
    act: Act
    arguments: tuple[str, ...] = ()
    """Their names. All are required."""


class Kind(NamedTuple):
    """A kind of request to the client: the capability it needs, and the SDK's models of it and of its result."""

    capability: str
    request: Any
    result: Any


KINDS = {
    "elicitation/create": Kind("elicitation", mcp_types.ElicitRequest, mcp_types.ElicitResult),
    "sampling/createMessage": Kind("sampling", mcp_types.CreateMessageRequest, mcp_types.CreateMessageResult),
    "roots/list": Kind("roots", mcp_types.ListRootsRequest, mcp_types.ListRootsResult),
}


class Failed(Exception):  # noqa: N818 - it is told to the caller, as it is
    """Why a tool has failed: a result with `isError`, not an error of the protocol."""


class InputRequired(Exception):  # noqa: N818 - nothing is wrong
    """The client has to answer first, and then to ask again."""

    def __init__(self, requests: JSON, state: Answers | None) -> None:
        super().__init__(*requests)
        self.result: JSON = {"resultType": "input_required", "inputRequests": requests}
        if state is not None:
            self.result["requestState"] = json.dumps(state)


# ── content ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def png() -> str:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00")) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunks).decode()


def wav() -> str:
    """A millisecond of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(8000)
        writer.writeframes(bytes(16))
    return base64.b64encode(file.getvalue()).decode()


def text(said: str) -> Content:
    return {"type": "text", "text": said}


def embedded(uri: str, mime_type: str, said: str) -> Content:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": said}}


IMAGE: Content = {"type": "image", "data": png(), "mimeType": "image/png"}
AUDIO: Content = {"type": "audio", "data": wav(), "mimeType": "audio/wav"}


# ── what is asked of the client ──────────────────────────────────────────────────────────────────────────────────────


def form(asking: str, **properties: JSON) -> JSON:
    """Asks the user to fill in *properties*, all of them."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"message": asking, "requestedSchema": schema}}


def sampling(asking: str) -> JSON:
    """Asks the client's model."""
    messages = [{"role": "user", "content": text(asking)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}}


def titled(**titles: str) -> list[JSON]:
    return [{"const": value, "title": title} for value, title in titles.items()]


STRING: JSON = {"type": "string"}
BOOLEAN: JSON = {"type": "boolean"}

A_NAME = {"user_name": form("Who are you?", name=STRING)}
A_CAPITAL = {"capital_question": sampling("Which city is the capital of Austria?")}
A_SUBJECT = {"user_context": form("What is it about?", context=STRING)}
CONSENT = {"confirm": form("Go on?", ok=BOOLEAN)}
ROOTS: dict[str, JSON] = {"client_roots": {"method": "roots/list", "params": {}}}
EVERYTHING = {**A_NAME, "greeting": sampling("How does one greet?"), **ROOTS}
STEP_1 = {"step1": form("First: who are you?", name=STRING)}
STEP_2 = {"step2": form("Second: which colour shall it be?", color=STRING)}
DEFAULTS = {
    "form": form(
        "Is this right?",
        name={**STRING, "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={**STRING, "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={**BOOLEAN, "default": True},
    )
}
CHOICES = {
    "form": form(
        "Which ones?",
        untitledSingle={**STRING, "enum": ["option1", "option2", "option3"]},
        titledSingle={**STRING, "oneOf": titled(value1="The first", value2="The second")},
        legacyEnum={**STRING, "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
        untitledMulti={"type": "array", "items": {**STRING, "enum": ["option1", "option2", "option3"]}},
        titledMulti={"type": "array", "items": {"anyOf": titled(value1="The first", value2="The second")}},
    )
}


def of_the_prompt(given: JSON) -> Mapping[str, JSON]:
    return {"reply": sampling(given["prompt"])}


def of_the_message(given: JSON) -> Mapping[str, JSON]:
    return {"user": form(given["message"], username=STRING, email=STRING)}


def modern(ctx: Any) -> bool:
    """Whether the request is of a revision without sessions: there, a server asks by way of its result."""
    return ctx.protocol_version in version.MODERN_PROTOCOL_VERSIONS


def declared(ctx: Any, request: JSON) -> bool:
    """Whether the client has said that it can be asked this."""
    capability = KINDS[request["method"]].capability
    able: bool = ctx.session.check_client_capability(mcp_types.ClientCapabilities(**{capability: {}}))
    return able


def check_declared(ctx: Any, requests: Mapping[str, JSON]) -> None:
    """Refuses the call if the client cannot be asked all of *requests*. Before 2026-07-28 the code has no name."""
    lacking = [each for each in requests.values() if not declared(ctx, each)]
    missing: JSON = {KINDS[each["method"]].capability: {} for each in lacking}
    if missing:
        raise exceptions.MCPError(
            mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"The client has to declare: {', '.join(missing)}",
            {"requiredCapabilities": missing},
        )


async def answer(ctx: Any, request: JSON) -> JSON:
    """What the client answers to *request*, sent to it while its own is open: how it is done in a session."""
    kind = KINDS[request["method"]]
    answered = await ctx.session.send_request(
        kind.request.model_validate(request),
        kind.result,
        metadata=message.ServerMessageMetadata(related_request_id=ctx.request_id),
    )
    dumped: JSON = answered.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


def answered_already(ctx: Any, *, stateful: bool) -> Answers:
    """What the client has sent along. The SDK has opened the state by then, and refused one that it has not sealed."""
    params = ctx.params if modern(ctx) else {}
    answers = params.get("inputResponses") or {}
    if not stateful:
        return dict(answers)
    state = params.get("requestState")
    return {} if state is None else {**json.loads(state), **answers}


async def asked(call: Call, rounds: Sequence[Round], *, stateful: bool, only_declared: bool) -> Answers:
    """The answers to all *rounds*. Raises `InputRequired` with the first round that has none, if it cannot wait."""
    ctx = call.ctx
    known = answered_already(ctx, stateful=stateful)
    answers: Answers = {}
    for each in rounds:
        requests = dict(each(call.arguments) if callable(each) else each)
        if only_declared:
            requests = {key: request for key, request in requests.items() if declared(ctx, request)} or requests
        check_declared(ctx, requests)
        answers |= {key: known[key] for key in requests if key in known}
        missing = {key: request for key, request in requests.items() if key not in answers}
        if missing and modern(ctx):
            raise InputRequired(missing, answers if stateful else None)
        answers |= {key: await answer(ctx, request) for key, request in missing.items()}
    return answers


def told(answered: JSON) -> str:
    """An answer of any kind, for people."""
    if "action" in answered:
        return f"action={answered['action']}, content={json.dumps(answered.get('content', {}))}"
    if "roots" in answered:
        return ", ".join(root["uri"] for root in answered["roots"])
    blocks = answered["content"] if isinstance(answered["content"], list) else [answered["content"]]
    return " ".join(block.get("text", block["type"]) for block in blocks)


# ── what tools and prompts do ────────────────────────────────────────────────────────────────────────────────────────


def says(*content: Content) -> Act:
    """Returns the same whenever it is called."""

    async def act(_: Call) -> Sequence[Content]:
        return content

    return act


def fills(template: Callable[[JSON], Sequence[Content]]) -> Act:
    """Returns what *template* makes of the arguments."""

    async def act(call: Call) -> Sequence[Content]:
        return template(call.arguments)

    return act


def asks(lead: str, *rounds: Round, stateful: bool = False, only_declared: bool = False) -> Act:
    """
    Asks the client, round by round, and returns what it was told.

    With *stateful*, what is known is kept in `requestState` between rounds, and answers without it do not count. With
    *only_declared*, it asks only what the client can be asked, as long as that is anything.
    """

    async def act(call: Call) -> Sequence[Content]:
        answers = await asked(call, rounds, stateful=stateful, only_declared=only_declared)
        return [text(f"{lead}: {'; '.join(map(told, answers.values()))}")]

    return act


async def fails(_: Call) -> Sequence[Content]:
    raise Failed("This tool fails whenever it is called.")


async def reports_progress(call: Call) -> Sequence[Content]:
    for progress in (0, 50, 100):
        await call.ctx.session.report_progress(progress, 100)
        await asyncio.sleep(PAUSE_SECONDS)
    return [text("Progress was reported, if it was asked for.")]


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

WANTED: dict[str | None, str] = {}
"""By session, the least level that it wants to hear of. Without sessions each request says so, and the SDK heeds it."""


def session_of(ctx: Any) -> str | None:
    """Its id. Over standard input and output there is one session, without."""
    session: str | None = None if ctx.request is None else ctx.request.headers.get("mcp-session-id")
    return session


def logs(pause: float) -> Act:
    """Logs three messages, *pause* seconds apart."""

    async def act(call: Call) -> Sequence[Content]:
        for said in ("Begun.", "Half-way.", "Done."):
            if LEVELS.index("info") >= LEVELS.index(WANTED.get(session_of(call.ctx), LEVELS[0])):
                await call.ctx.session.send_log_message("info", said, NAME, related_request_id=call.ctx.request_id)
            await asyncio.sleep(pause)
        return [text("Messages were logged, if they were asked for.")]

    return act


async def reconnects(call: Call) -> Sequence[Content]:
    """Closes the stream that its result belongs on. There is one over HTTP, with sessions; elsewhere it only waits."""
    # The SDK starts the stream and the call at the same time: closed at once, it would end before its first event.
    await asyncio.sleep(PAUSE_SECONDS)
    if call.ctx.close_sse_stream is not None:
        await call.ctx.close_sse_stream()
    await asyncio.sleep(PAUSE_SECONDS)
    return [text("The stream was closed meanwhile, if there was one.")]


BUS = subscriptions.InMemorySubscriptionBus()


def announces(event: Any) -> Act:
    """Tells every `subscriptions/listen`. In fact nothing changes: other scenarios look at the same lists."""

    async def act(_: Call) -> Sequence[Content]:
        await BUS.publish(event)
        return [text(f"Announced: {type(event).__name__}.")]

    return act


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PARCEL: JSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "address", "type": "object", "properties": {"street": STRING, "town": STRING}}},
    "properties": {
        "to": {"$ref": "#/$defs/address"},
        "by": {**STRING, "enum": ["post", "courier"]},
        "stamp": STRING,
        "phone": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["stamp"]}, {"required": ["phone"]}]}],
    "if": {"properties": {"by": {"const": "courier"}}, "required": ["by"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["stamp"]},
    "additionalProperties": False,
}
"""A bit of everything that 2020-12 has: it has to be listed as it is."""


def takes(**properties: JSON) -> JSON:
    """The schema of arguments that are all required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def region(given: JSON) -> Sequence[Content]:
    return [text(f"The region is {given['region']}.")]


def greeting(given: JSON) -> Sequence[Content]:
    return [text(f"Hello, {given['name']}!")]


IN_HEADER: JSON = {**STRING, "x-mcp-header": "Region"}
EMBEDDED = embedded("test://embedded-resource", "text/plain", "What is embedded.")
MIXED = embedded("test://mixed-content-resource", "application/json", '{"kind": "mixed"}')

TOOLS = {
    # The suite calls the first that is listed, without arguments.
    "test_simple_text": Tool("Returns text.", says(text("Nothing but text."))),
    "test_image_content": Tool("Returns an image.", says(IMAGE)),
    "test_audio_content": Tool("Returns a sound.", says(AUDIO)),
    "test_embedded_resource": Tool("Returns a resource.", says(EMBEDDED)),
    "test_multiple_content_types": Tool("Returns text, an image and a resource.", says(text("Of each:"), IMAGE, MIXED)),
    "test_error_handling": Tool("Fails.", fails),
    "test_tool_with_progress": Tool("Reports its progress three times.", reports_progress),
    "test_tool_with_logging": Tool("Logs three messages.", logs(PAUSE_SECONDS)),
    # The suite waits half a second for its result.
    "test_logging_tool": Tool("Logs three messages, if they are wanted.", logs(0)),
    "test_reconnection": Tool("Closes the stream of its result before it returns.", reconnects),
    "test_trigger_tool_change": Tool("Announces other tools.", announces(subscriptions.ToolsListChanged())),
    "test_trigger_prompt_change": Tool("Announces other prompts.", announces(subscriptions.PromptsListChanged())),
    "test_sampling": Tool("Asks the model.", asks("The model", of_the_prompt), takes(prompt=STRING)),
    "test_elicitation": Tool("Asks the user.", asks("The user", of_the_message), takes(message=STRING)),
    "test_elicitation_sep1034_defaults": Tool("Asks the user, with answers filled in.", asks("The user", DEFAULTS)),
    "test_elicitation_sep1330_enums": Tool("Asks the user to choose.", asks("The user", CHOICES)),
    "test_streaming_elicitation": Tool("Asks the user.", asks("The user", A_NAME)),
    "test_missing_capability": Tool("Cannot do without a model.", asks("The model", A_CAPITAL)),
    "test_input_required_result_elicitation": Tool("Asks the user.", asks("The user", A_NAME)),
    "test_input_required_result_sampling": Tool("Asks the model.", asks("The model", A_CAPITAL)),
    "test_input_required_result_list_roots": Tool("Asks for the roots.", asks("The roots", ROOTS)),
    "test_input_required_result_request_state": Tool(
        "Asks the user, and the client for the state of it.", asks("state-ok", CONSENT, stateful=True)
    ),
    "test_input_required_result_tampered_state": Tool(
        "Asks the user, and the client for the state of it as it was.", asks("The user", CONSENT, stateful=True)
    ),
    "test_input_required_result_multiple_inputs": Tool(
        "Asks for several things at a time.", asks("All", EVERYTHING, stateful=True)
    ),
    "test_input_required_result_multi_round": Tool(
        "Asks for one thing after the other.", asks("All", STEP_1, STEP_2, stateful=True)
    ),
    "test_input_required_result_capabilities": Tool(
        "Asks for what the client can be asked.", asks("All", EVERYTHING, only_declared=True)
    ),
    "test_x_mcp_header": Tool("Has an argument that is in a header as well.", fills(region), takes(region=IN_HEADER)),
    "greet": Tool("Greets.", fills(greeting), takes(name=STRING)),
    "json_schema_2020_12_tool": Tool("Has a schema with much of what there is.", says(text("It fits.")), PARCEL),
}


# ── prompts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def pair(given: JSON) -> Sequence[Content]:
    return [text(f"arg1 is {given['arg1']}, arg2 is {given['arg2']}.")]


def passage(given: JSON) -> Sequence[Content]:
    return [embedded(given["resourceUri"], "text/plain", "What is embedded."), text("What is this?")]


PROMPTS = {
    "test_simple_prompt": Prompt("Says something.", says(text("Nothing but a prompt."))),
    "test_prompt_with_arguments": Prompt("Says what it is given.", fills(pair), ("arg1", "arg2")),
    "test_prompt_with_embedded_resource": Prompt("Shows a resource.", fills(passage), ("resourceUri",)),
    "test_prompt_with_image": Prompt("Shows an image.", says(IMAGE, text("What is this?"))),
    "test_input_required_result_prompt": Prompt("Asks what it is about.", asks("It is about", A_SUBJECT)),
}

COMPLETIONS = {("test_prompt_with_arguments", "arg1"): ("test", "testament", "testimony", "text")}
"""By prompt and argument, what it could be."""


# ── resources ────────────────────────────────────────────────────────────────────────────────────────────────────────

RESOURCES: dict[str, JSON] = {
    "test://static-text": {"mimeType": "text/plain", "text": "What a text resource contains."},
    "test://static-binary": {"mimeType": "image/png", "blob": IMAGE["data"]},
    "test://watched-resource": {"mimeType": "text/plain", "text": "What can be watched, and does not change."},
}
TEMPLATE = "test://template/{id}/data"
OF_TEMPLATE = re.compile(r"test://template/([^/]+)/data")
