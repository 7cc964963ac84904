"""Plain names for what the rungs do: JSON-RPC, schema validator, middleware. Thin: nothing is judged here anew."""
