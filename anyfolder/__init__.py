"""Reads whatever folder of labeled images people have, checked against the pixels."""

__version__ = '0.1.0'
