"""What happens to long runs: signals, files that cannot be read."""
