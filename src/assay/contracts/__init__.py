"""What tools promise: their input and output schemas, ready to judge."""
