// The official TypeScript client, against many servers in one process: {name: [command, ...args]} as JSON on standard
// input, {name: the names of its tools, or an error as text} on standard output.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

// Each server is a process or two, and the machine may have two cores.
const AT_ONCE = 4;

async function tools([command, ...args]) {
  const client = new Client({ name: 'typescript', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  try {
    await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore', env: process.env }));
    return (await client.listTools()).tools.map((tool) => tool.name);
  } catch (error) {
    return `${error.constructor.name}: ${error.message}`;
  } finally {
    await client.close();
  }
}

let text = '';
for await (const chunk of process.stdin) text += chunk;
const waiting = Object.entries(JSON.parse(text));
const found = {};

async function work() {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) found[next[0]] = await tools(next[1]);
}

await Promise.all(Array.from({ length: AT_ONCE }, work));
console.log(JSON.stringify(found));
