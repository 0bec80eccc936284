"""Heads of classifiers, which need MMPretrain, and what heads of detectors share."""
