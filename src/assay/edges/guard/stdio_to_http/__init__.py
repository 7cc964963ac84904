"""A client on our standard streams, a server at a URL."""
