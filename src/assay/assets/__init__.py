"""The asset server's pure middle: what it serves, and the seven tools over it. No STDIO, no HTTP serving."""
