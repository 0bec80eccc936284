"""Faults of long runs: signals, files that cannot be read, and errors of the frameworks."""
