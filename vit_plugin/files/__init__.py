"""Helpers that need neither torch nor a framework.

They find the package's own files, move paths in configs, resize and tile images, set up the
standard streams, and escape untrusted text.
"""
