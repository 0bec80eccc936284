"""Tasks, one folder each, declared in its ``__init__.py``."""
