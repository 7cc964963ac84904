"""Output for terminals: tables, colours and safe text."""
