"""Where judged messages are recorded: the journal, metrics, telemetry, recordings."""
