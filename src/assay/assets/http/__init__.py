"""The asset server over Streamable HTTP."""
