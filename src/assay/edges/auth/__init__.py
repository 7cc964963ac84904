"""Authentication over HTTP: API keys and signed tokens, and the responses to clients without valid ones."""

from assay.edges.auth.challenges import Denied, Principal
from assay.edges.auth.gate import Gate

__all__ = ["Denied", "Gate", "Principal"]
