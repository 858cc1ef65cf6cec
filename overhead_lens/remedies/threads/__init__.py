"""How many threads work, and how they wait."""
