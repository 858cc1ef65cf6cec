"""Ways to compile a call, or not to."""
