"""The judge: one conversation, its state, and what follows from a verdict. No I/O, no clock."""
