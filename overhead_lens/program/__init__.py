"""Inside a user's program under ``overhead-lens run``: finds its steps and measures them in turns."""
