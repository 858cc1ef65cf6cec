"""A user's own program, run once: the budget of its steps."""
