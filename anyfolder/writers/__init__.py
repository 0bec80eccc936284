"""Write a dataset in another format, so that reading it back gives the same data."""
