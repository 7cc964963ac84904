// The official TypeScript client: lists the tools of the server that its arguments start, and prints their names.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'typescript', version: '1' });
await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
try {
  const { tools } = await client.listTools();
  console.log(tools.map((tool) => tool.name).join(', '));
} catch (error) {
  console.log(`no tools: ${error.constructor.name}`);
}
await client.close();
