"""Readers of data formats, which check labels against the images and return a listing."""
