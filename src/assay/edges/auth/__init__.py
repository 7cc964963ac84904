"""Who may come in over HTTP: API keys and signed tokens, and what is said to those who may not."""

from assay.edges.auth.challenges import Denied, Principal
from assay.edges.auth.gate import Gate

__all__ = ["Denied", "Gate", "Principal"]
