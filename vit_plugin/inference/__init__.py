"""Inference: load a model with its preprocessing and classes, run it, and write its predictions."""

SCORE_THR = 0.3  # lowest score of an object or class that is listed or drawn
# Side of the smallest slices in pixels, as in train --tiles; smaller ones would be too many.
MIN_SLICE_SIDE = 16
TABLE_SUFFIXES = ('.json', '.jsonl', '.csv')  # suffixes of files of predictions
