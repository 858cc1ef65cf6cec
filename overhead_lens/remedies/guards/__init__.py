"""Fewer guards before a compiled call."""
