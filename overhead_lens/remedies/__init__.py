"""Remedies: ways to make a call faster. Standard library only at import: torch is imported when one is applied."""
