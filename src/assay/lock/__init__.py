"""The reviewed state of a server, and what has changed since. No clock, and I/O only in `lock_file`."""
