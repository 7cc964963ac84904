// A server with everything that the official conformance suite looks for, on the official TypeScript SDK.
//
//     typescript_server.mjs                       over standard input and output
//     typescript_server.mjs --http 127.0.0.1:0    over Streamable HTTP; where, it says on stderr: url=…
//
// Both serve every revision that the SDK knows: with sessions up to 2025-11-25, without from 2026-07-28 on. What there
// is to serve is in `typescript_fixtures.mjs`, for the extension tasks in `typescript_tasks.mjs`; the skills are those of
// the folder `skills`, served by the SDK's own extension.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    createMcpHandler,
    fromJsonSchema,
    hostHeaderValidationResponse,
    isInitializeRequest,
    isLegacyRequest,
    localhostAllowedHostnames,
    localhostAllowedOrigins,
    McpServer,
    originValidationResponse,
    ProtocolError,
    ProtocolErrorCode,
    ResourceTemplate,
    WebStandardStreamableHTTPServerTransport
} from '@modelcontextprotocol/server';
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

import {
    COMPLETIONS,
    NAME,
    PROMPTS,
    RESOURCES,
    STATE,
    STRING,
    takes,
    TEMPLATE,
    text,
    TOOLS
} from './typescript_fixtures.mjs';
import { addTasks, JOBS, started } from './typescript_tasks.mjs';

// How long a client should wait until it comes back to a stream that was closed.
const RETRY_MS = 100;

// How long a client may keep what it has read: nothing here ever changes.
const FRESH = { ttlMs: 60_000, cacheScope: 'public' };
const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];
const CACHED = [...LISTS, 'resources/read', 'server/discover'];

const SKILLS = await loadSkills(fileURLToPath(new URL('skills', import.meta.url)), { cacheHint: FRESH, strict: true });
const CALLABLE = { ...TOOLS, ...JOBS };
const SCHEMAS = Object.fromEntries(Object.entries(CALLABLE).map(([name, each]) => [name, fromJsonSchema(each.schema)]));

// ── answering ────────────────────────────────────────────────────────────────────────────────────────────────────────

// Calls a tool. The SDK's own handler would make a result of every error, and hold a task to the output schema.
const called = async ({ params }, ctx, announce) => {
    const tool = CALLABLE[params.name];
    if (tool === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${params.name}`);
    const { issues, value } = await SCHEMAS[params.name]['~standard'].validate(params.arguments ?? {});
    if (issues !== undefined) return failed(issues.map(each => each.message).join('; '));
    try {
        return params.name in JOBS ? await started(tool, value, ctx) : await tool.act(value, ctx, announce);
    } catch (why) {
        if (why instanceof ProtocolError) throw why;
        return failed(why.message);
    }
};

const failed = why => ({ content: [text(why)], isError: true });

const addTools = (mcp, announce) => {
    for (const [name, each] of Object.entries(CALLABLE)) {
        const outputSchema = each.output && fromJsonSchema(each.output);
        mcp.registerTool(name, { description: each.about, inputSchema: SCHEMAS[name], outputSchema }, () => ({}));
    }
    mcp.server.setRequestHandler('tools/call', (request, ctx) => called(request, ctx, announce));
};

const addPrompts = mcp => {
    for (const [name, each] of Object.entries(PROMPTS)) {
        const argsSchema = fromJsonSchema(takes(Object.fromEntries(each.args.map(arg => [arg, STRING]))));
        mcp.registerPrompt(name, { description: each.about, argsSchema }, async (given, ctx) => {
            const { content, ...more } = await each.act(given, ctx);
            if (content === undefined) return more;
            return { description: each.about, messages: content.map(block => ({ role: 'user', content: block })) };
        });
    }
    mcp.server.setRequestHandler('completion/complete', ({ params }) => {
        const possible = COMPLETIONS[params.ref.name]?.[params.argument.name] ?? [];
        const values = possible.filter(each => each.startsWith(params.argument.value));
        return { completion: { values, total: values.length, hasMore: false } };
    });
};

const addResources = mcp => {
    for (const [uri, each] of Object.entries(RESOURCES)) {
        const about = { description: `At ${uri}`, mimeType: each.mimeType };
        mcp.registerResource(uri.replace('test://', ''), uri, about, () => ({ contents: [{ uri, ...each }] }));
    }
    const template = new ResourceTemplate(TEMPLATE, { list: undefined });
    const about = { description: 'One for every id', mimeType: 'application/json' };
    mcp.registerResource('template', template, about, (uri, { id }) => {
        const said = JSON.stringify({ id, data: `What belongs to ${id}` });
        return { contents: [{ uri: uri.href, mimeType: 'application/json', text: said }] };
    });
    // As nothing ever changes, there is nothing to remember.
    for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
        mcp.server.setRequestHandler(method, () => ({}));
    }
};

// All of it, as a server of the SDK's that is not connected yet. `announce` tells subscribers of other tools or prompts.
const fixtureServer = announce => {
    const changing = { listChanged: true };
    const mcp = new McpServer(
        { name: NAME, version: '1' },
        {
            capabilities: {
                tools: changing,
                prompts: changing,
                resources: { subscribe: true, ...changing },
                completions: {},
                logging: {}
            },
            cacheHints: Object.fromEntries(CACHED.map(method => [method, FRESH])),
            requestState: { verify: STATE.verify }
        }
    );
    const telling = announce ?? { tools: () => mcp.sendToolListChanged(), prompts: () => mcp.sendPromptListChanged() };
    addTools(mcp, telling);
    addPrompts(mcp);
    addResources(mcp);
    addTasks(mcp.server);
    SKILLS.attach(mcp);
    return mcp;
};

// ── serving ──────────────────────────────────────────────────────────────────────────────────────────────────────────

// What was sent in one session, for a client that comes back to a stream.
class Events {
    stored = [];

    async storeEvent(stream, message) {
        this.stored.push({ stream, message });
        return String(this.stored.length - 1);
    }

    async getStreamIdForEventId(last) {
        return this.stored[Number(last)]?.stream;
    }

    async replayEventsAfter(last, { send }) {
        const { stream } = this.stored[Number(last)];
        for (let ident = Number(last) + 1; ident < this.stored.length; ident++) {
            const { stream: of, message } = this.stored[ident];
            // The first event of a stream has no message.
            if (of === stream && Object.keys(message).length > 0) await send(String(ident), message);
        }
        return stream;
    }
}

const SESSIONS = new Map();

// The revisions up to 2025-11-25: a transport and a server for each session.
const inSession = async request => {
    const ident = request.headers.get('mcp-session-id');
    if (ident !== null) {
        const session = SESSIONS.get(ident);
        return session === undefined ? refused(404, -32001, 'Session not found') : await session.handleRequest(request);
    }
    const body = await request.clone().json().catch(() => undefined);
    if (!isInitializeRequest(body)) return refused(400, -32000, 'The header Mcp-Session-Id is missing');
    const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: begun => void SESSIONS.set(begun, transport),
        onsessionclosed: ended => void SESSIONS.delete(ended),
        eventStore: new Events(),
        retryInterval: RETRY_MS
    });
    await fixtureServer().connect(transport);
    return await transport.handleRequest(request);
};

const refused = (status, code, message) =>
    Response.json({ jsonrpc: '2.0', id: null, error: { code, message } }, { status });

// On a host of this machine alone, it refuses requests that name another.
const serveHttp = (host, port) => {
    const modern = createMcpHandler(() => fixtureServer(announce), { legacy: 'reject' });
    const announce = { tools: () => modern.notify.toolsChanged(), prompts: () => modern.notify.promptsChanged() };
    const fetch = async request => {
        const foreign =
            hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
            originValidationResponse(request, localhostAllowedOrigins());
        if (foreign !== undefined) return foreign;
        return (await isLegacyRequest(request)) ? await inSession(request) : await modern.fetch(request);
    };
    const listening = createServer(toNodeHandler({ fetch }));
    listening.listen(port, host, () => console.error(`url=http://${host}:${listening.address().port}/mcp`));
    process.on('SIGTERM', () => process.exit(0));
};

const [option, where] = process.argv.slice(2);
if (option === '--http') {
    const { hostname, port } = new URL(`http://${where}`);
    serveHttp(hostname, Number(port));
} else {
    serveStdio(() => fixtureServer());
}
