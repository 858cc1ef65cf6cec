"""Matrix products, whose shapes give the floating-point operations."""

MOST_PRODUCTS = 20_000
"""So many of them keep their arguments; reading more would cost as much as the rest of an analysis."""
