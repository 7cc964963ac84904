"""Clients over HTTP, a server at a URL."""
