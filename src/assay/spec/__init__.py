"""What each protocol revision says, as data: its facts, its methods, its schema."""
