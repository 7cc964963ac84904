"""Tables and colours for people."""
