"""Imported by ``changes_directory.py`` after it has gone elsewhere."""

VALUE = 11
