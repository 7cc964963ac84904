"""The guard: what it does with verdicts on a client and a server that are not ours. No I/O."""
