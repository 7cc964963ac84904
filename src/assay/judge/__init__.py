"""The rungs a message climbs, in order: framing, syntax, envelope, protocol, contract."""
