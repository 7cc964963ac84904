// The tools that run as tasks, and the methods of `io.modelcontextprotocol/tasks`: as `fixture_tasks.py`, for the
// official TypeScript SDK, which has no tasks of its own for servers.

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';

import { fromJsonSchema, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';

import { A_NAME, asked, BOOLEAN, form, NO_ARGUMENTS, STRING, takes, text, told } from './typescript_fixtures.mjs';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

// How long a second of `slow_compute` takes. The suite asks for up to 60, and waits for the short ones.
const SECOND_MS = 100;
const KEPT_MS = 600_000;
const POLL_MS = 100;

const HEADER_MISMATCH = -32020;
const MISSING_CAPABILITY = -32021;

const now = () => new Date().toISOString();

class Task {
    constructor(job, given) {
        this.taskId = randomUUID();
        this.createdAt = this.lastUpdatedAt = now();
        this.status = 'working';
        this.details = {};
        this.answers = {};
        this.stopping = new AbortController();
        void this.run(job, given);
    }

    // A tool that fails has completed; only a protocol error is a failure.
    async run(job, given) {
        let end;
        try {
            end = ['completed', { result: await job.work(given, this) }];
        } catch (why) {
            if (why instanceof ProtocolError) end = ['failed', { statusMessage: why.message, error: { code: why.code, message: why.message } }];
            else end = ['completed', { result: { content: [text(why.message)], isError: true } }];
        }
        if (this.status !== 'cancelled') this.become(...end);
    }

    become(status, details = {}) {
        Object.assign(this, { status, details, lastUpdatedAt: now() });
    }

    pause(seconds) {
        return wait(seconds * SECOND_MS, undefined, { signal: this.stopping.signal });
    }

    // Resolves with the client's answers to all `requests`, which it sends with `tasks/update`.
    ask(inputRequests) {
        this.become('input_required', { inputRequests });
        return new Promise(resolve => (this.answered = resolve));
    }

    update(responses) {
        const open = this.details.inputRequests ?? {};
        const left = {};
        for (const [key, request] of Object.entries(open)) {
            if (key in responses) this.answers[key] = responses[key];
            else left[key] = request;
        }
        if (Object.keys(left).length > 0) this.become('input_required', { inputRequests: left });
        else if (this.status === 'input_required') {
            this.become('working');
            this.answered(this.answers);
        }
    }

    cancel() {
        if (this.status !== 'working' && this.status !== 'input_required') return;
        this.become('cancelled');
        this.stopping.abort();
    }

    shown(resultType, details = {}) {
        const { taskId, status, createdAt, lastUpdatedAt } = this;
        const limits = { ttlMs: KEPT_MS, pollIntervalMs: POLL_MS };
        return { resultType, taskId, status, createdAt, lastUpdatedAt, ...limits, ...details };
    }
}

// ── the tools ────────────────────────────────────────────────────────────────────────────────────────────────────────

const computes = async (given, task) => {
    await task.pause(given.seconds);
    const said = `${given.label ?? 'It'} took ${given.seconds} seconds.`;
    return { content: [text(said)], structuredContent: { seconds: given.seconds } };
};

const fails = async (_, task) => {
    await task.pause(1);
    throw new Error('This job fails whenever it is started.');
};

const breaks = async (_, task) => {
    await task.pause(1);
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'This job breaks whenever it is started.');
};

const deletes = async (given, task) => {
    const { consent } = await task.ask({ consent: form(`Delete ${given.filename}?`, { confirm: BOOLEAN }) });
    return { content: [text(`${given.filename}: ${told(consent)}`)] };
};

const asksTwice = async (_, task) => {
    const first = form('Who comes first?', { name: STRING });
    const answers = await task.ask({ first, second: form('And then?', { name: STRING }) });
    return { content: [text(Object.values(answers).map(told).join('; '))] };
};

const greetsLater = async (given, task) => {
    await task.pause(1);
    return { content: [text(`It was started by ${told(given.user_name)}.`)] };
};

const NUMBER = { type: 'number', minimum: 0 };
const COMPUTE = { type: 'object', properties: { seconds: NUMBER, label: STRING }, required: ['seconds'] };

// `required`: only a client that declares the extension can call it. `rounds`: asked before there is a task.
const job = (about, work, schema = NO_ARGUMENTS, more = {}) => ({ about, work, schema, rounds: [], ...more });

export const JOBS = {
    // With an output schema: the handle of the task has nothing of what it asks for.
    slow_compute: job('Takes its time.', computes, COMPUTE, { output: takes({ seconds: NUMBER }) }),
    failing_job: job('Fails in the background.', fails, NO_ARGUMENTS, { required: true }),
    protocol_error_job: job('Breaks in the background.', breaks, NO_ARGUMENTS, { required: true }),
    confirm_delete: job('Asks before it deletes nothing.', deletes, takes({ filename: STRING }), { required: true }),
    multi_input: job('Asks two things at a time.', asksTwice, NO_ARGUMENTS, { required: true }),
    test_tool_with_task: job('Asks who starts it, then starts.', greetsLater, NO_ARGUMENTS, {
        required: true,
        rounds: [A_NAME]
    })
};

// ── the methods ──────────────────────────────────────────────────────────────────────────────────────────────────────

// Every task that was ever started, by id: they are few, and the server does not live long.
const TASKS = new Map();

// Where a client does not know tasks, a job runs at once, and cannot be stopped.
const AT_ONCE = { pause: seconds => wait(seconds * SECOND_MS) };

const declared = ctx => ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES]?.extensions?.[EXTENSION] !== undefined;

const checkDeclared = ctx => {
    if (declared(ctx)) return;
    const requiredCapabilities = { extensions: { [EXTENSION]: {} } };
    throw new ProtocolError(MISSING_CAPABILITY, `The client has to declare ${EXTENSION}`, { requiredCapabilities });
};

// Starts a task, or returns the result to a client that does not know tasks.
export const started = async (each, given, ctx) => {
    if (each.required) checkDeclared(ctx);
    if (!declared(ctx)) return await each.work(given, AT_ONCE);
    const { more, answers } = await asked(ctx, given, each.rounds);
    if (more !== undefined) return more;
    const task = new Task(each, { ...given, ...answers });
    TASKS.set(task.taskId, task);
    return task.shown('task');
};

// The task that a request names, in its body and over HTTP in a header as well.
const taskOf = (taskId, ctx) => {
    checkDeclared(ctx);
    if (ctx.http?.req !== undefined && ctx.http.req.headers.get('mcp-name') !== taskId) {
        throw new ProtocolError(HEADER_MISMATCH, 'The header Mcp-Name is not the taskId');
    }
    const task = TASKS.get(taskId);
    if (task === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such task');
    return task;
};

const METHODS = {
    'tasks/get': task => task.shown('complete', task.details),
    // The SDK takes the answers out of the params, as it does for a retry.
    'tasks/update': (task, ctx) => (task.update(ctx.mcpReq.inputResponses ?? {}), {}),
    'tasks/cancel': task => (task.cancel(), {})
};

const PARAMS = fromJsonSchema({ type: 'object', properties: { taskId: STRING }, required: ['taskId'] });

// Serves the methods with `server`, a low-level one of the SDK, and declares the extension.
export const addTasks = server => {
    server.registerCapabilities({ extensions: { [EXTENSION]: {} } });
    for (const [method, handler] of Object.entries(METHODS)) {
        server.setRequestHandler(method, { params: PARAMS }, (params, ctx) => handler(taskOf(params.taskId, ctx), ctx));
    }
};
