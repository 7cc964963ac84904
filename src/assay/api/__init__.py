"""The library's classes for JSON-RPC, schema validation and middleware. A thin layer: the rungs do the judging."""
