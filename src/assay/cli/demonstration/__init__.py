"""A demonstration: a server with three common faults, and what a client gets without and with the guard."""
