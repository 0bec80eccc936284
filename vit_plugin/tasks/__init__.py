"""What is asked of an image, each a folder whose ``__init__.py`` declares it."""
