"""Clients over HTTP, a server in child processes."""
