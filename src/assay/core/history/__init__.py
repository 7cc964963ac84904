"""What a message means by the messages before it: its request, its round, its task, its subscription."""
