"""The same training over a grid of settings, several seeds each."""
