"""The page in the browser."""
