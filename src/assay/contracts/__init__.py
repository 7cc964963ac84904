"""The contracts of tools: their compiled input and output schemas."""
