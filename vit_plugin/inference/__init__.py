"""A model with its pixels and classes: loaded, asked, and what it answered."""

SCORE_THR = 0.3  # of a box that is listed or drawn
TABLE_SUFFIXES = ('.json', '.jsonl', '.csv')  # of files of predictions
