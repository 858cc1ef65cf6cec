"""What would make a call faster, tried and measured."""
