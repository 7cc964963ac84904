"""The server of `assay demo`, with three common faults."""
