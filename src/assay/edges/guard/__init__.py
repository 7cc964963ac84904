"""The guard at its edges: a folder for each way to reach the two sides, and what they share."""
