"""Faults of long runs: signals, and files that cannot be read."""
