"""Gives agents one read-only tool. Reaches no writer of the index, not even through its imports."""
