"""The configuration files of MCP clients: which servers they start, and the guard in front of them."""
