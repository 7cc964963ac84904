// The official TypeScript client for the suite's scenarios about authorization: signs in where it is asked to, lists the
// tools and calls one. The suite gives the URL of its server as the last argument, and the scenario by variables.
//
// With ASSAY_GUARD, a JSON array of a command, that is started in front of the server, and the client talks to it.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

const modules = join(import.meta.dirname, '..', 'clients', 'node_modules');
const client = join(modules, '@modelcontextprotocol', 'client', 'dist', 'index.mjs');
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = await import(pathToFileURL(client));

const REDIRECT = 'http://localhost:3000/callback';
const CLIENT_ID_URL = 'https://conformance-test.local/client-metadata.json';

const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const revision = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION;

// Somebody who signs in at once: authorization servers of the suite redirect without a question.
class Person {
  redirectUrl = REDIRECT;
  clientMetadataUrl = CLIENT_ID_URL;
  clientMetadata = {
    client_name: 'assay',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: 'native',
  };
  // By who has registered it: another authorization server knows nothing of it.
  #clients = new Map();

  clientInformation({ issuer } = {}) {
    const known = context.client_id && { client_id: context.client_id, client_secret: context.client_secret };
    return known ?? this.#clients.get(issuer);
  }
  saveClientInformation(client, { issuer } = {}) {
    this.#clients.set(issuer, client);
  }
  tokens() {
    return this.saved;
  }
  saveTokens(tokens) {
    this.saved = tokens;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
  async redirectToAuthorization(url) {
    const answer = await fetch(url, { redirect: 'manual' });
    this.callback = new URL(answer.headers.get('location')).searchParams;
  }
}

// What *work* gives, after as many sign-ins as it takes, which are few.
async function signedIn(person, transport, work) {
  for (let times = 0; ; times++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || times === 2) throw error;
      await transport().finishAuth(person.callback);
    }
  }
}

async function converse(url) {
  const person = new Person();
  const options = revision === '2026-07-28' ? { versionNegotiation: { mode: 'auto' } } : {};
  let client, transport;
  await signedIn(person, () => transport, async () => {
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: person });
    client = new Client({ name: 'assay', version: '1' }, options);
    await client.connect(transport);
  });
  await signedIn(person, () => transport, () => client.listTools());
  await signedIn(person, () => transport, () => client.callTool({ name: 'test-tool', arguments: {} }));
  await client.close();
}

// The address of a guard in front of *url*, and what ends it.
async function guarded(command, url) {
  const [program, ...rest] = JSON.parse(command);
  const options = ['--listen', '127.0.0.1:0', '--target', url];
  const guard = spawn(program, [...rest, ...options], { stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of createInterface({ input: guard.stderr })) {
    const found = line.match(/guarding .* at (\S+)$/);
    if (found) {
      guard.stderr.resume();
      return [found[1], () => guard.kill()];
    }
    console.error(line);
  }
  throw new Error('the guard does not start');
}

const server = process.argv.at(-1);
const [url, end] = process.env.ASSAY_GUARD ? await guarded(process.env.ASSAY_GUARD, server) : [server, () => {}];
try {
  await converse(url);
} finally {
  end();
}
process.exit(0);
