"""What a run costs, as plans, and what features are worth, as probes."""
