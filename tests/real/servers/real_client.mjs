// The official TypeScript client of a real server: carries out the plan on standard input, prints what it got as JSON.
// What a plan is, real_servers.py says.

import { openSync, readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

// What a plan may take; it takes one or two seconds.
const SECONDS = 50;

// What the client notes down for itself must not get into the report.
console.debug = console.log = console.info = console.error;

const heard = {};
let changed = () => {};

function note(kind, what) {
  (heard[kind] ??= []).push(what);
  changed();
}

async function until(kind, number) {
  while ((heard[kind] ?? []).length < number) await new Promise((resolve) => (changed = resolve));
}

// What a request came to: its result, or the error that it was answered with.
async function outcome(pending) {
  try {
    return { result: await pending };
  } catch (error) {
    // A word for a code means that the client has refused the result itself.
    if (typeof error.code === 'string') return { refused: error.message };
    if (error.code === undefined) throw error;
    return { error: { code: error.code, message: error.message, data: error.data ?? null } };
  }
}

// A client that answers what the server asks, and remembers all that it says unasked. With a handshake it offers the
// revision of the plan, if that has one.
function clientFor(plan) {
  const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {}, url: {} } };
  const offer = plan.revision ? { supportedProtocolVersions: [plan.revision] } : {};
  const negotiation = plan.handshake ? offer : { versionNegotiation: { mode: 'auto' } };
  const client = new Client({ name: 'typescript', version: '1' }, { capabilities, ...negotiation });
  const { sampling, elicitation, roots } = plan.answers;
  client.setRequestHandler('sampling/createMessage', ({ params }) => {
    note('sampling', params);
    return sampling;
  });
  client.setRequestHandler('elicitation/create', ({ params }) => {
    note('elicitation', params);
    return elicitation[params.mode === 'url' ? 'url' : 'form'];
  });
  client.setRequestHandler('roots/list', () => {
    note('roots', null);
    return roots;
  });
  client.setNotificationHandler('notifications/message', ({ params }) => note('log', params));
  client.fallbackNotificationHandler = (message) => note('notification', message);
  return client;
}

const steps = (client) => ({
  async call(name, args) {
    const told = [];
    const onprogress = ({ progress, total = null, message = null }) => told.push([progress, total, message]);
    return { ...(await outcome(client.callTool({ name, arguments: args }, { onprogress }))), progress: told };
  },
  misuse: (name, args) => outcome(client.callTool({ name, arguments: args })),
  read: (uri) => outcome(client.readResource({ uri })),
  get: (name, args) => outcome(client.getPrompt({ name, arguments: args })),
  complete: (ref, argument, context) =>
    outcome(client.complete({ ref, argument, ...(context ? { context: { arguments: context } } : {}) })),
  level: (level) => outcome(client.setLoggingLevel(level)),
  subscribe: (uri) => outcome(client.subscribeResource({ uri })),
  unsubscribe: (uri) => outcome(client.unsubscribeResource({ uri })),
  ping: () => outcome(client.ping()),
  async move() {
    const before = (heard.roots ?? []).length;
    await client.sendRootsListChanged();
    await until('roots', before + 1);
    return null;
  },
  async hear(kind, number) {
    await until(kind, number);
    return null;
  },
});

function transportTo({ server, log }) {
  if (server.url) return new StreamableHTTPClientTransport(new URL(server.url));
  return new StdioClientTransport({ ...server, stderr: openSync(log, 'w') });
}

async function carriedOut(plan) {
  const client = clientFor(plan);
  const transport = transportTo(plan);
  await client.connect(transport);
  try {
    const report = {
      revision: client.getNegotiatedProtocolVersion(),
      server: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      instructions: client.getInstructions() ?? null,
      tools: await outcome(client.listTools()),
      resources: await outcome(client.listResources()),
      templates: await outcome(client.listResourceTemplates()),
      prompts: await outcome(client.listPrompts()),
      steps: [],
    };
    const known = steps(client);
    for (const [verb, ...given] of plan.steps) report.steps.push(await known[verb](...given));
    // The client would leave its session, if the server gave it one, to time out.
    await transport.terminateSession?.();
    return { ...report, heard };
  } finally {
    await client.close();
  }
}

setTimeout(() => {
  console.error(`not done within ${SECONDS} seconds`);
  process.exit(1);
}, SECONDS * 1000).unref();

process.stdout.write(JSON.stringify(await carriedOut(JSON.parse(readFileSync(0, 'utf8')))));
