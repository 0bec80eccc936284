"""Checkpoints of a run: what they hold, how they are written, which are kept."""
