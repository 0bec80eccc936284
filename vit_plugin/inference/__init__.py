"""Inference: load a model with its preprocessing and classes, run it, and write its predictions."""

SCORE_THR = 0.3  # lowest score of an object or class that is listed or drawn
TABLE_SUFFIXES = ('.json', '.jsonl', '.csv')  # suffixes of files of predictions
