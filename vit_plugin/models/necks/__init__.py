"""Necks between the outputs of a backbone and a head."""
