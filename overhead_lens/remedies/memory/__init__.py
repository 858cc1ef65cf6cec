"""Who gives memory, and when it is given back."""
