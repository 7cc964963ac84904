"""What a server was when somebody reviewed it, and what has changed since. No I/O but in `file`, and no clock."""
