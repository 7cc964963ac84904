"""The protocol revisions as data: facts, methods and schemas."""
