"""Measure the cost of a run (planning) and the quality of features (probing)."""
