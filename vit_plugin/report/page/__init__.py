"""The page in the browser, ``vit-plugin demo``."""
