// The official TypeScript SDK: one tool, whose result is made once. `low` is its low-level server, else McpServer.
import { readFileSync } from 'node:fs';
import { McpServer, Server, fromJsonSchema } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';

const { tool, result } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const information = { name: 'bench', version: '1' };
let server;
if (process.argv[3] === 'low') {
    server = new Server(information, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', async () => ({ tools: [tool] }));
    server.setRequestHandler('tools/call', async () => result);
} else {
    server = new McpServer(information);
    const { name, title, description, annotations } = tool;
    const [inputSchema, outputSchema] = [fromJsonSchema(tool.inputSchema), fromJsonSchema(tool.outputSchema)];
    server.registerTool(name, { title, description, inputSchema, outputSchema, annotations }, async () => result);
}
await server.connect(new StdioServerTransport());
