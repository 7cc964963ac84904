"""List what a server offers, as a client."""
