"""What a server offered when it was reviewed, and what has changed since. I/O only in `lock_file`; no clock."""
