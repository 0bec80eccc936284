"""What a model and a run cost and are worth: plans, benchmarks, probes, sweeps."""
