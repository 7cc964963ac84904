"""The console: a bounded store of what guards have judged, and the HTTP application that a page reads it from."""
