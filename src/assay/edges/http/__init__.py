"""The toolkit for Streamable HTTP: server, heads, sessions, streams, limits."""
