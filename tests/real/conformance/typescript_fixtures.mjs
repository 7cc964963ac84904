// What the official conformance suite looks for in a server, as tables: tools, prompts and resources.
//
// The same as `fixtures.py`, for the official TypeScript SDK. How it is served is in `typescript_server.mjs`.

import { setTimeout as wait } from 'node:timers/promises';

import { createRequestStateCodec, inputRequired, LOG_LEVEL_META_KEY } from '@modelcontextprotocol/server';

export const NAME = 'typescript-conformance-fixtures';

// Between two things that a client should see happen one after the other; the suite asks for as much.
const PAUSE_MS = 50;

const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const NEEDED = { 'elicitation/create': 'elicitation', 'sampling/createMessage': 'sampling', 'roots/list': 'roots' };

// Seals `requestState`. The same in every process, or one could not continue what another has begun. It is not a
// secret: any reader of this file can forge a state.
export const STATE = createRequestStateCodec({ key: 'anybody may read this key and forge states' });

// ── content ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// One red pixel.
const PNG =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';

// A sound without a single sample.
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';

export const text = said => ({ type: 'text', text: said });
const embedded = (uri, mimeType, said) => ({ type: 'resource', resource: { uri, mimeType, text: said } });

const IMAGE = { type: 'image', data: PNG, mimeType: 'image/png' };
const AUDIO = { type: 'audio', data: WAV, mimeType: 'audio/wav' };

// ── asking the client ────────────────────────────────────────────────────────────────────────────────────────────────

export const STRING = { type: 'string' };
export const BOOLEAN = { type: 'boolean' };

export const form = (message, properties) => ({
    method: 'elicitation/create',
    params: { message, requestedSchema: { type: 'object', properties, required: Object.keys(properties) } }
});

const sampling = prompt => ({
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 }
});

const titled = titles => Object.entries(titles).map(([value, title]) => ({ const: value, title }));

export const A_NAME = { user_name: form('Who are you?', { name: STRING }) };
const A_CAPITAL = { capital_question: sampling('Which city is the capital of Norway?') };
const A_SUBJECT = { user_context: form('What is it about?', { context: STRING }) };
const CONSENT = { confirm: form('Go on?', { ok: BOOLEAN }) };
const ROOTS = { client_roots: { method: 'roots/list' } };
const EVERYTHING = { ...A_NAME, greeting: sampling('How do people greet?'), ...ROOTS };
const FIRST = { step1: form('First: who are you?', { name: STRING }) };
const SECOND = { step2: form('Second: which colour shall it be?', { color: STRING }) };

const DEFAULTS = {
    form: form('Is this right?', {
        name: { ...STRING, default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { ...STRING, enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { ...BOOLEAN, default: true }
    })
};

const THREE = ['option1', 'option2', 'option3'];
const CHOICES = {
    form: form('Which ones?', {
        untitledSingle: { ...STRING, enum: THREE },
        titledSingle: { ...STRING, oneOf: titled({ value1: 'The first', value2: 'The second' }) },
        legacyEnum: { ...STRING, enum: ['opt1', 'opt2'], enumNames: ['One', 'Two'] },
        untitledMulti: { type: 'array', items: { ...STRING, enum: THREE } },
        titledMulti: { type: 'array', items: { anyOf: titled({ value1: 'The first', value2: 'The second' }) } }
    })
};

const declares = (ctx, request) => {
    const capabilities = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES];
    return capabilities === undefined || NEEDED[request.method] in capabilities;
};

// Which of `round` to ask: with `onlyDeclared`, not what the client cannot be asked, as long as anything is left.
const askable = (ctx, round, onlyDeclared) => {
    const able = Object.entries(round).filter(([, request]) => declares(ctx, request));
    return onlyDeclared && able.length > 0 ? Object.fromEntries(able) : round;
};

const known = (ctx, stateful) => {
    const sent = ctx.mcpReq.inputResponses ?? {};
    if (!stateful) return sent;
    const state = ctx.mcpReq.requestState();
    return state === undefined ? {} : { ...state, ...sent };
};

// Returns { answers }, or { more } if the client has to answer first. Before 2026-07-28 the SDK asks the client itself.
export const asked = async (ctx, given, rounds, { stateful = false, onlyDeclared = false } = {}) => {
    const sent = known(ctx, stateful);
    const answers = {};
    for (const each of rounds) {
        const requests = askable(ctx, typeof each === 'function' ? each(given) : each, onlyDeclared);
        for (const key of Object.keys(requests)) if (key in sent) answers[key] = sent[key];
        const open = Object.fromEntries(Object.entries(requests).filter(([key]) => !(key in answers)));
        if (Object.keys(open).length > 0) {
            const state = stateful ? { requestState: await STATE.mint(answers, ctx) } : {};
            return { more: inputRequired({ inputRequests: open, ...state }) };
        }
    }
    return { answers };
};

export const told = answer => {
    if ('action' in answer) return `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;
    if ('roots' in answer) return answer.roots.map(root => root.uri).join(', ');
    return [answer.content].flat().map(block => block.text ?? block.type).join(' ');
};

// ── what tools and prompts do: each returns content, or a result that asks for more ──────────────────────────────────

const says = (...content) => async () => ({ content });
const fills = template => async given => ({ content: [text(template(given))] });

const asks = (lead, rounds, options) => async (given, ctx) => {
    const { more, answers } = await asked(ctx, given, rounds, options);
    return more ?? { content: [text(`${lead}: ${Object.values(answers).map(told).join('; ')}`)] };
};

const fails = async () => {
    throw new Error('This tool fails whenever it is called.');
};

const reportsProgress = async (_, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
        await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
        await wait(PAUSE_MS);
    }
    return { content: [text('Progress was reported, if it was asked for.')] };
};

const logs = async (_, ctx) => {
    // Since 2026-07-28 a request says which messages it wants; before, the SDK heeds what the session has said.
    const wanted = ctx.mcpReq.envelope === undefined || LOG_LEVEL_META_KEY in ctx.mcpReq.envelope;
    for (const said of wanted ? ['Begun.', 'Half-way.', 'Done.'] : []) {
        await ctx.mcpReq.log('info', said, NAME);
        await wait(PAUSE_MS);
    }
    return { content: [text('Messages were logged, if they were asked for.')] };
};

// Closes the stream that its result belongs on. There is one over HTTP, with sessions; elsewhere it only waits.
const reconnects = async (_, ctx) => {
    await wait(PAUSE_MS);
    ctx.http?.closeSSE?.();
    await wait(PAUSE_MS);
    return { content: [text('The stream was closed meanwhile, if there was one.')] };
};

const announces = what => async (_, ctx, announce) => {
    announce[what]();
    return { content: [text(`Announced: other ${what}.`)] };
};

// ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export const takes = properties => ({ type: 'object', properties, required: Object.keys(properties) });
export const NO_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: false };

// A bit of everything that 2020-12 has: it has to be listed as it is.
const LETTER = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address: { $anchor: 'address', type: 'object', properties: { street: STRING, town: STRING } } },
    properties: {
        to: { $ref: '#/$defs/address' },
        by: { ...STRING, enum: ['air', 'sea'] },
        ship: STRING,
        stamp: STRING
    },
    allOf: [{ anyOf: [{ required: ['ship'] }, { required: ['stamp'] }] }],
    if: { properties: { by: { const: 'sea' } }, required: ['by'] },
    then: { required: ['ship'] },
    else: { required: ['stamp'] },
    additionalProperties: false
};

const EMBEDDED = embedded('test://embedded-resource', 'text/plain', 'What is embedded.');
const MIXED = embedded('test://mixed-content-resource', 'application/json', '{"kind": "mixed"}');
const IN_HEADER = { ...STRING, 'x-mcp-header': 'Region' };

const tool = (about, act, schema = NO_ARGUMENTS) => ({ about, act, schema });

export const TOOLS = {
    // The suite calls the first that is listed, without arguments.
    test_simple_text: tool('Returns text.', says(text('Nothing but text.'))),
    test_image_content: tool('Returns an image.', says(IMAGE)),
    test_audio_content: tool('Returns a sound.', says(AUDIO)),
    test_embedded_resource: tool('Returns a resource.', says(EMBEDDED)),
    test_multiple_content_types: tool('Returns text, an image and a resource.', says(text('Of each:'), IMAGE, MIXED)),
    test_error_handling: tool('Fails.', fails),
    test_tool_with_progress: tool('Reports its progress three times.', reportsProgress),
    test_tool_with_logging: tool('Logs three messages.', logs),
    test_logging_tool: tool('Logs three messages, if they are wanted.', logs),
    test_reconnection: tool('Closes the stream of its result before it returns.', reconnects),
    test_trigger_tool_change: tool('Announces other tools.', announces('tools')),
    test_trigger_prompt_change: tool('Announces other prompts.', announces('prompts')),
    test_sampling: tool(
        'Asks the model.',
        asks('The model', [given => ({ reply: sampling(given.prompt) })]),
        takes({ prompt: STRING })
    ),
    test_elicitation: tool(
        'Asks the user.',
        asks('The user', [given => ({ user: form(given.message, { username: STRING, email: STRING }) })]),
        takes({ message: STRING })
    ),
    test_elicitation_sep1034_defaults: tool('Asks the user, with answers filled in.', asks('The user', [DEFAULTS])),
    test_elicitation_sep1330_enums: tool('Asks the user to choose.', asks('The user', [CHOICES])),
    test_streaming_elicitation: tool('Asks the user.', asks('The user', [A_NAME])),
    test_missing_capability: tool('Cannot do without a model.', asks('The model', [A_CAPITAL])),
    test_input_required_result_elicitation: tool('Asks the user.', asks('The user', [A_NAME])),
    test_input_required_result_sampling: tool('Asks the model.', asks('The model', [A_CAPITAL])),
    test_input_required_result_list_roots: tool('Asks for the roots.', asks('The roots', [ROOTS])),
    test_input_required_result_request_state: tool(
        'Asks the user, and the client for the state of it.',
        asks('state-ok', [CONSENT], { stateful: true })
    ),
    test_input_required_result_tampered_state: tool(
        'Asks the user, and the client for the state of it as it was.',
        asks('The user', [CONSENT], { stateful: true })
    ),
    test_input_required_result_multiple_inputs: tool(
        'Asks for several things at a time.',
        asks('All', [EVERYTHING], { stateful: true })
    ),
    test_input_required_result_multi_round: tool(
        'Asks for one thing after the other.',
        asks('All', [FIRST, SECOND], { stateful: true })
    ),
    test_input_required_result_capabilities: tool(
        'Asks for what the client can be asked.',
        asks('All', [EVERYTHING], { onlyDeclared: true })
    ),
    test_x_mcp_header: tool(
        'Has an argument that is in a header as well.',
        fills(given => `The region is ${given.region}.`),
        takes({ region: IN_HEADER })
    ),
    greet: tool('Greets.', fills(given => `Hello, ${given.name}!`), takes({ name: STRING })),
    json_schema_2020_12_tool: tool('Has a schema with much of what there is.', says(text('It fits.')), LETTER)
};

// ── prompts and resources ────────────────────────────────────────────────────────────────────────────────────────────

const prompt = (about, act, ...args) => ({ about, act, args });
const passage = uri => embedded(uri, 'text/plain', 'What is embedded.');

export const PROMPTS = {
    test_simple_prompt: prompt('Says something.', says(text('Nothing but a prompt.'))),
    test_prompt_with_arguments: prompt(
        'Says what it is given.',
        fills(given => `arg1 is ${given.arg1}, arg2 is ${given.arg2}.`),
        'arg1',
        'arg2'
    ),
    test_prompt_with_embedded_resource: prompt(
        'Shows a resource.',
        async given => ({ content: [passage(given.resourceUri), text('What is this?')] }),
        'resourceUri'
    ),
    test_prompt_with_image: prompt('Shows an image.', says(IMAGE, text('What is this?'))),
    test_input_required_result_prompt: prompt('Asks what it is about.', asks('It is about', [A_SUBJECT]))
};

// By prompt and argument, what it could be.
export const COMPLETIONS = { test_prompt_with_arguments: { arg1: ['test', 'testament', 'testimony', 'text'] } };

export const RESOURCES = {
    'test://static-text': { mimeType: 'text/plain', text: 'What a text resource contains.' },
    'test://static-binary': { mimeType: 'image/png', blob: PNG },
    'test://watched-resource': { mimeType: 'text/plain', text: 'What can be watched, and does not change.' }
};
export const TEMPLATE = 'test://template/{id}/data';
