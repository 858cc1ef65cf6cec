"""Remedies: ways to make a call faster, one file each. Standard library only at import: torch is imported when one is applied."""
