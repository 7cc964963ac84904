"""What everything else builds on: values, limits, codes, names. Imports nothing of ours."""
