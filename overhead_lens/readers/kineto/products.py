"""Operators whose shapes give the floating-point operations: matrix products."""

PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm"})

MOST_PRODUCTS = 20_000
"""So many of them keep their arguments; reading more would cost as much as the rest of an analysis."""
