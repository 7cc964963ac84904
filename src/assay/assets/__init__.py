"""The asset server: its catalogue, its seven tools, the response envelope, and its HTTP application."""
