"""Where Assay waits: for standard input, for sockets, for processes. Nothing here judges."""
