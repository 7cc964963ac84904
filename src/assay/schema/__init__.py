"""The JSON Schema engine: admission of schemas from outside, judging, and explaining within a budget."""
