// The official TypeScript client: carries out the plan on standard input, and prints what it got as JSON.
// What a plan is, test_official_clients.py says.

import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

// What a plan may take; it takes one or two seconds.
const SECONDS = 45;

const TRANSPORTS = {
  // The server's log goes where ours goes.
  stdio: (server) => new StdioClientTransport({ ...server, stderr: 'inherit' }),
  http: ({ url }) => new StreamableHTTPClientTransport(new URL(url)),
};

// A client that agrees on a revision: by `initialize`, offering the plan's, or by asking the server which it has.
function clientFor(plan) {
  const options = plan.handshake
    ? { supportedProtocolVersions: [plan.revision] }
    : { versionNegotiation: { mode: 'auto' } };
  return new Client({ name: 'typescript', version: '1' }, options);
}

// What a request came to: its result, or the error that it was answered with.
async function outcome(pending) {
  try {
    return { result: await pending };
  } catch (error) {
    // A word for a code means that the transport failed; the tests see that no server has said it.
    if (error.code === undefined) throw error;
    return { error: { code: error.code, message: error.message } };
  }
}

async function inTurn(steps, work) {
  const done = [];
  for (const step of steps) done.push(await outcome(work(step)));
  return done;
}

async function carriedOut(plan) {
  const client = clientFor(plan);
  const transport = TRANSPORTS[plan.transport](plan.server);
  await client.connect(transport);
  try {
    const report = {
      revision: client.getNegotiatedProtocolVersion(),
      server: client.getServerVersion(),
      tools: await client.listTools(),
      resources: await client.listResources(),
      templates: await client.listResourceTemplates(),
      prompts: await client.listPrompts(),
    };
    report.calls = await inTurn(plan.calls, (call) => client.callTool(call));
    const uris = report.resources.resources.map(({ uri }) => uri);
    report.reads = await inTurn([...uris, ...plan.reads], (uri) => client.readResource({ uri }));
    report.gets = await inTurn(plan.gets, (prompt) => client.getPrompt(prompt));
    report.completions = await inTurn(plan.completions, (wanted) => client.complete(wanted));
    // The client would leave its session, if the server gave it one, to time out.
    await transport.terminateSession?.();
    return report;
  } finally {
    await client.close();
  }
}

setTimeout(() => {
  console.error(`not done within ${SECONDS} seconds`);
  process.exit(1);
}, SECONDS * 1000).unref();

process.stdout.write(JSON.stringify(await carriedOut(JSON.parse(readFileSync(0, 'utf8')))));
