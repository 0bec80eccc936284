"""Heads of classifiers, which need MMPretrain."""
