"""Write a dataset in another format, so that reading it again gives the same."""
