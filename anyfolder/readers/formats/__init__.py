"""Formats of annotations: what a file of each looks like, and what it says."""
