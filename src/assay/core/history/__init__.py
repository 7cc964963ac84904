"""What a message means by what was said before it: its request, its round, its task, its subscription."""
