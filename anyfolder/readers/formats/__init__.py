"""Annotation formats: how to recognize and parse their files."""
