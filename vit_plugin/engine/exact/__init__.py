"""Exact resuming: a run can start at any position, and ends as if it had never stopped."""
