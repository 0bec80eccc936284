"""A model with its pixels and classes: loaded, asked, and what it answered."""

SCORE_THR = 0.3  # lowest score of a box that is listed or drawn
TABLE_SUFFIXES = ('.json', '.jsonl', '.csv')  # suffixes of files of predictions
