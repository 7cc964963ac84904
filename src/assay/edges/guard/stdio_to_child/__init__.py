"""A client on our standard streams, a server in a child process."""
