"""Optimizer wrappers, layer-wise decay and schedules: the update of a training step."""
