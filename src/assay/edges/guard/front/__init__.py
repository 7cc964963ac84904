"""What clients over HTTP meet first, whatever is behind it, and how all of it is put together."""
