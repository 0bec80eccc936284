"""A model with its pixels and classes: loaded, asked, and what it answered."""
