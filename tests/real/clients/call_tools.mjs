// The official TypeScript client: calls every tool of the server that its arguments start, and prints by name, as JSON,
// whether it accepts the result.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'typescript', version: '1' }, { versionNegotiation: { mode: 'auto' } });
await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore', env: process.env }));
const found = {};
for (const { name } of (await client.listTools()).tools) {
  found[name] = await client.callTool({ name, arguments: {} }).then((result) => result.content[0].text, () => null);
}
console.log(JSON.stringify(found));
await client.close();
